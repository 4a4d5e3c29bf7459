#include <string.h>

#include "core/base/cancel.h"
#include "core/base/descriptor.h"
#include "core/base/error.h"
#include "core/base/sized.h"
#include "core/block/share.h"

/* A gm_shared on a socket is a magic word and the struct as it is. Both sides are on one machine and of one version,
 * which the magic word and struct_size show. The number of the sender's descriptor means nothing to the receiver and is
 * not sent. */

typedef struct share_letter {
  char mark[8];
  gm_shared shared;
} share_letter;

_Static_assert(sizeof(share_letter) == 8 + 40 + GM_UUID_BYTES + GM_SHARE_BACKEND_BYTES + GM_SHARE_IPC_BYTES,
               "no padding, which would carry what lay there");

static const char share_mark[8] = "gmshare";

gm_status gm_shared_send(int socket, const gm_shared *shared, gm_error *err) {
  GM__UNCANCELLED();
  static const char op[] = "gm_shared_send";
  share_letter letter;
  if (socket < 0) return gm__bad_argument(err, op, "`socket` is none");
  gm_status status = gm__sized_in(&letter.shared, sizeof letter.shared, shared, op, "shared", err);
  if (status == GM_OK) status = gm__share_check_words(&letter.shared, op, err);
  if (status) return status;
  const int fd = letter.shared.fd;
  memcpy(letter.mark, share_mark, sizeof letter.mark);
  letter.shared.fd = -1;
  return gm__descriptor_send(socket, &letter, sizeof letter, fd, err);
}

static gm_status share_check_letter(share_letter *letter, int fd, gm_error *err) {
  static const char op[] = "gm_shared_receive";
  gm_error why;
  const bool whole = letter->shared.struct_size == sizeof letter->shared && letter->shared.fd == -1;
  if (memcmp(letter->mark, share_mark, sizeof letter->mark) != 0 || !whole) {
    return gm__fail(err, GM_ERR_FORMAT, op, "what came is no gm_shared");
  }
  letter->shared.fd = fd;
  if (gm__share_check_words(&letter->shared, op, &why) == GM_OK) return GM_OK;
  return gm__fail(err, GM_ERR_FORMAT, op, "what came is no gm_shared: %s", why.message);
}

gm_status gm_shared_receive(int socket, gm_shared *out, gm_error *err) {
  GM__UNCANCELLED();
  share_letter letter;
  int fd = -1;
  if (socket < 0) return gm__bad_argument(err, "gm_shared_receive", "`socket` is none");
  gm_status status = gm__sized_check(out, sizeof *out, "gm_shared_receive", "out", err);
  if (status) return status;
  status = gm__descriptor_receive(socket, &letter, sizeof letter, &fd, err);
  if (status) return status;
  status = share_check_letter(&letter, fd, err);
  if (status == GM_OK) {
    gm__sized_out(out, &letter.shared, sizeof letter.shared);
  } else {
    gm__descriptor_close(fd);
  }
  return status;
}

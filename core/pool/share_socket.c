#include <string.h>

#include "core/base/descriptor.h"
#include "core/base/error.h"
#include "core/pool/share.h"

/* A gm_shared on a socket: a mark, and the struct as it is, since both sides are on one machine and of one version,
 * which the mark and struct_size say. The number of the sender's descriptor means nothing to the receiver and stays at
 * home. */

typedef struct share_letter {
  char mark[8];
  gm_shared shared;
} share_letter;

_Static_assert(sizeof(share_letter) == 8 + 40 + GM_UUID_BYTES + GM_SHARE_BACKEND_BYTES + GM_SHARE_IPC_BYTES,
               "no padding, which would carry what lay there");

static const char share_mark[8] = "gmshare";

gm_status gm_shared_send(int socket, const gm_shared *shared, gm_error *err) {
  static const char op[] = "gm_shared_send";
  share_letter letter;
  if (socket < 0 || !shared) return gm__bad_argument(err, op, "`%s` is none", shared ? "socket" : "shared");
  const gm_status status = gm__share_check_words(shared, op, err);
  if (status) return status;
  memcpy(letter.mark, share_mark, sizeof letter.mark);
  letter.shared = *shared;
  letter.shared.fd = -1;
  return gm__descriptor_send(socket, &letter, sizeof letter, shared->fd, err);
}

static gm_status share_check_letter(share_letter *letter, int fd, gm_error *err) {
  static const char op[] = "gm_shared_receive";
  gm_error why;
  if (memcmp(letter->mark, share_mark, sizeof letter->mark) != 0 || letter->shared.fd != -1) {
    return gm__fail(err, GM_ERR_FORMAT, 0, op, "what came is no gm_shared");
  }
  letter->shared.fd = fd;
  if (gm__share_check_words(&letter->shared, op, &why) == GM_OK) return GM_OK;
  return gm__fail(err, GM_ERR_FORMAT, 0, op, "what came is no gm_shared: %s", why.message);
}

gm_status gm_shared_receive(int socket, gm_shared *out, gm_error *err) {
  share_letter letter;
  int fd = -1;
  if (socket < 0 || !out) return gm__bad_argument(err, "gm_shared_receive", "`%s` is none", out ? "socket" : "out");
  gm_status status = gm__descriptor_receive(socket, &letter, sizeof letter, &fd, err);
  if (status) return status;
  status = share_check_letter(&letter, fd, err);
  if (status == GM_OK) {
    *out = letter.shared;
  } else {
    gm__descriptor_close(fd);
  }
  return status;
}

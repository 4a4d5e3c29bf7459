# Helpers for tests/. Sanitizer settings: drivers are not instrumented, over-allocation must fail, not abort, and the
# thread sanitizer does not wait a second at the end of each process for reports of threads that have ended long ago. gcc 12's
# leak check takes the thread-local memory of libraries that come and go for something else, and crashes on it.
set(gm_test_environment
  "ASAN_OPTIONS=allocator_may_return_null=1:detect_leaks=1:strict_string_checks=1:intercept_tls_get_addr=0"
  "LSAN_OPTIONS=suppressions='${PROJECT_SOURCE_DIR}/tests/support/lsan.supp':print_suppressions=0"
  "UBSAN_OPTIONS=print_stacktrace=1:halt_on_error=1"
  "TSAN_OPTIONS=atexit_sleep_ms=0:allocator_may_return_null=1:ignore_noninstrumented_modules=1:halt_on_error=1:second_deadlock_stack=1"
  # Vulkan's layer also checks what one submission leaves to the next (it calls that alpha).
  "VK_LAYER_ENABLES=VALIDATION_CHECK_ENABLE_SYNCHRONIZATION_VALIDATION_QUEUE_SUBMIT"
  # Drivers keep their caches inside the build tree.
  "POCL_CACHE_DIR=${CMAKE_BINARY_DIR}/cache/pocl"
  "XDG_CACHE_HOME=${CMAKE_BINARY_DIR}/cache"
  "GM_REQUIRE_BACKENDS=${GM_REQUIRE_BACKENDS}")
if(GM_TESTS_FEW)
  list(APPEND gm_test_environment TESTS_FEW=1)
endif()
if(TARGET gm-probe) # a test program with the library inside has no place to look for it
  list(APPEND gm_test_environment "GM_PROBE_HELPER=$<TARGET_FILE:gm-probe>")
endif()
file(MAKE_DIRECTORY "${CMAKE_BINARY_DIR}/cache/pocl")
# ENVIRONMENT for tests of CUDA without a card: tests/simulated makes these.
set(gm_simulated_cuda "GM_CUDA_LIBRARY=${CMAKE_BINARY_DIR}/simulated/cuda/libcuda.so.1"
  "GM_CUDA_OPTIONS=nvml=${CMAKE_BINARY_DIR}/simulated/cuda/libnvidia-ml.so.1")
# The same for HIP, as ROCm 6, 5 and 7.
set(gm_simulated_hip "GM_HIP_LIBRARY=${CMAKE_BINARY_DIR}/simulated/hip/libamdhip64.so.6")
set(gm_simulated_hip5 "GM_HIP_LIBRARY=${CMAKE_BINARY_DIR}/simulated/hip/libamdhip64.so.5")
set(gm_simulated_hip7 "GM_HIP_LIBRARY=${CMAKE_BINARY_DIR}/simulated/hip/libamdhip64.so.7")

# ENVIRONMENT for what starts Vulkan's loader a thousand times: without it each start loads every driver of the system.
find_file(GM_LAVAPIPE_ICD NAMES lvp_icd.${CMAKE_HOST_SYSTEM_PROCESSOR}.json lvp_icd.json
  PATHS /usr/share/vulkan/icd.d /etc/vulkan/icd.d NO_DEFAULT_PATH)
mark_as_advanced(GM_LAVAPIPE_ICD)
set(gm_lavapipe_alone "")
if(GM_LAVAPIPE_ICD)
  set(gm_lavapipe_alone "VK_DRIVER_FILES=${GM_LAVAPIPE_ICD}")
endif()
if(GM_SANITIZE) # the others are not looked into, and each is loaded slowly; plain builds have all of the system's
  # Each device of lavapipe starts threads for drawing, too, for which a sanitizer sets up a stack and more.
  list(APPEND gm_test_environment ${gm_lavapipe_alone} "LP_NUM_THREADS=0")
endif()

# Runs each test, and ends it with all its threads' stacks when its time is up. It is no part of what a sanitizer looks at.
add_executable(gm_limit "${PROJECT_SOURCE_DIR}/tests/support/limit.c")
target_compile_definitions(gm_limit PRIVATE _GNU_SOURCE)
if(GM_SANITIZE)
  target_compile_options(gm_limit PRIVATE -fno-sanitize=all)
  target_link_options(gm_limit PRIVATE -fno-sanitize=all)
endif()
set_target_properties(gm_limit PROPERTIES RUNTIME_OUTPUT_DIRECTORY "${CMAKE_BINARY_DIR}/bin/tests")
gm_warnings(gm_limit)

# ENVIRONMENT of a test with one thread that has the label serial, so that the thread sanitizer's build leaves it out: in
# plain builds a second thread ends it. Tests run in the source root. The loader takes no path with a space.
set(gm_one_thread "")
file(RELATIVE_PATH gm_preloads "${PROJECT_SOURCE_DIR}" "${CMAKE_BINARY_DIR}/preload")
if(NOT GM_SANITIZE AND NOT gm_preloads MATCHES "[ :;]")
  add_library(gm_one_thread_preload SHARED "${PROJECT_SOURCE_DIR}/tests/support/one_thread.c")
  target_compile_definitions(gm_one_thread_preload PRIVATE __wrap_pthread_create=pthread_create)
  set_target_properties(gm_one_thread_preload PROPERTIES LIBRARY_OUTPUT_DIRECTORY "${CMAKE_BINARY_DIR}/preload")
  gm_warnings(gm_one_thread_preload)
  set(gm_one_thread "LD_PRELOAD=${gm_preloads}/libgm_one_thread_preload.so")
endif()

# It links the large programs of sanitized builds in a third of the time.
find_program(GM_LLD ld.lld)
mark_as_advanced(GM_LLD)

# Where tests find their files. A definition for every source would make each of them another one in another folder, which
# the compiler's cache would not know.
file(CONFIGURE OUTPUT "${CMAKE_BINARY_DIR}/tests_include/test_data.h"
  CONTENT "#define GM_TEST_DATA \"${PROJECT_SOURCE_DIR}/tests/data\"\n")

# gm_test_program(name SOURCES file... LINK target...): a program in bin/tests that may include tests/support headers.
function(gm_test_program name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "" "SOURCES;LINK")
  add_executable(${name} ${arg_SOURCES})
  add_dependencies(${name} gm_limit)
  target_link_libraries(${name} PRIVATE ${arg_LINK})
  target_include_directories(${name} PRIVATE "${PROJECT_SOURCE_DIR}/tests" "${CMAKE_BINARY_DIR}/tests_include")
  target_compile_definitions(${name} PRIVATE _GNU_SOURCE)
  if(GM_SANITIZE)
    target_compile_definitions(${name} PRIVATE GM_TEST_SANITIZED=1)
    # A sanitizer clears its shadow of each library that comes and goes, and Vulkan's loader brings dozens.
    if(NOT name MATCHES "^process_|^test_(dynlib|module)$")
      if(NOT TARGET gm_kept_libraries)
        add_library(gm_kept_libraries OBJECT "${PROJECT_SOURCE_DIR}/tests/support/keep_libraries.c")
      endif()
      target_sources(${name} PRIVATE $<TARGET_OBJECTS:gm_kept_libraries>)
    endif()
    # A program that stands where it was linked needs no relocations, of which sanitizers add 4 MB. Modules that it loads
    # find its symbols all the same.
    target_link_options(${name} PRIVATE -no-pie)
  endif()
  if(GM_LLD AND (GM_SANITIZE OR CMAKE_C_COMPILER_ID MATCHES "Clang")) # plain builds with gcc have the linker that users have
    target_link_options(${name} PRIVATE -fuse-ld=lld)
  endif()
  if("PkgConfig::CMOCKA" IN_LIST arg_LINK)
    target_compile_options(${name} PRIVATE
      "$<$<COMPILE_LANGUAGE:C>:SHELL:-include \"${PROJECT_SOURCE_DIR}/tests/support/named_asserts.h\">")
    target_include_directories(${name} PRIVATE "${PROJECT_SOURCE_DIR}/include")
    # gcc takes twice as long to optimise instrumented assertions as to compile them, and each runs once.
    if(GM_SANITIZE)
      target_compile_options(${name} PRIVATE -O0)
    endif()
  endif()
  # Most of what a program weighs is the library's debug information, which gdb has in the dev build.
  if(CMAKE_BUILD_TYPE STREQUAL "RelWithDebInfo" OR (GM_COVERAGE AND NOT GM_SANITIZE))
    target_link_options(${name} PRIVATE "LINKER:--strip-debug")
    target_compile_options(${name} PRIVATE -g0) # which would be stripped, too
  endif()
  gm_warnings(${name})
endfunction()

find_program(GM_VALGRIND valgrind)
mark_as_advanced(GM_VALGRIND)
add_custom_target(valgrind_programs COMMENT "What runs under valgrind is built")
# Each configuration takes others, so that programs which will not run need not be built. The seed repeats a choice.
set(gm_chance_seed "$ENV{GM_TEST_SEED}")
if(gm_chance_seed STREQUAL "")
  string(RANDOM LENGTH 12 ALPHABET 123456789 gm_chance_seed)
endif()
set(gm_chance_list "${CMAKE_BINARY_DIR}/by_chance.txt")
file(WRITE "${gm_chance_list}" "")
set(gm_valgrind_command ${GM_VALGRIND} --quiet --error-exitcode=99 --leak-check=full --show-leak-kinds=definite,possible
  --errors-for-leak-kinds=definite,possible --num-callers=30
  --suppressions=${PROJECT_SOURCE_DIR}/tests/support/valgrind.supp)

# gm_add_test(NAME name COMMAND ... [LABELS ...] [TIMEOUT seconds] [ENVIRONMENT VAR=value...] [VALGRIND] [UNSEEN]): runs in the
# source root. TIMEOUT ends what hangs, with every thread's stack (tests/support/limit.c): 120 s, where nothing is said;
# three times that under a sanitizer or valgrind. A test with the label house that reads nothing built has the label sources,
# too: it ends alike in every build. Leaving with 77 means skipped, with the reason printed. VALGRIND: where
# the build is a plain one, there is a twin valgrind.<name> with the label valgrind, run by `ctest --preset valgrind` alone.
# Of twins that the memory sanitizer looks at, too, chance takes one in twenty: the others have the label by_chance. UNSEEN:
# the memory sanitizer does not see all of it, because its build has not the library that the test calls, or it is wrong
# there. The twin always runs. The label msan is for what that build runs, so that others of its kind (`clang`, `minimal`) need not.
function(gm_add_test)
  cmake_parse_arguments(PARSE_ARGV 0 arg "VALGRIND;UNSEEN" "NAME;TIMEOUT" "COMMAND;LABELS;ENVIRONMENT")
  if(NOT arg_TIMEOUT)
    set(arg_TIMEOUT 120)
  endif()
  string(FIND "${arg_COMMAND}" "${CMAKE_BINARY_DIR}" built)
  if("house" IN_LIST arg_LABELS AND built EQUAL -1 AND NOT arg_COMMAND MATCHES "TARGET_FILE")
    list(APPEND arg_LABELS sources)
  endif()
  if(arg_LABELS MATCHES "(^|;)(unit|cts|guard|fuzz)(;|$)" AND (GM_SANITIZE STREQUAL "memory"
      OR NOT (arg_UNSEEN OR "${arg_NAME};${arg_LABELS}" MATCHES "cuda|hip|opencl|vulkan|simulated")))
    list(APPEND arg_LABELS msan)
  endif()
  math(EXPR slow "${arg_TIMEOUT} * 3")
  if(GM_SANITIZE)
    set(arg_TIMEOUT ${slow})
  endif()
  # ctest itself ends what even gm_limit does not: it counts the time for which a busy machine lets a test wait, too.
  math(EXPR slow_end "${slow} * 10")
  math(EXPR end "${arg_TIMEOUT} * 10")
  list(GET arg_COMMAND 0 program)
  string(LENGTH "${program};" skip) # list(POP_FRONT) forgets which semicolons are a word's
  string(SUBSTRING "${arg_COMMAND};" ${skip} -1 arg_COMMAND)
  set(start ${program})
  if(TARGET ${program} OR NOT program MATCHES "/|>|^sh$") # some targets come later
    set(start $<TARGET_FILE:${program}>)
  endif()
  add_test(NAME ${arg_NAME} COMMAND gm_limit ${arg_TIMEOUT} ${start} ${arg_COMMAND} WORKING_DIRECTORY "${PROJECT_SOURCE_DIR}")
  if(GM_SANITIZE MATCHES address AND arg_NAME MATCHES "opencl")
    list(APPEND arg_ENVIRONMENT
      "LSAN_OPTIONS=suppressions='${PROJECT_SOURCE_DIR}/tests/support/lsan_opencl.supp':print_suppressions=0")
  endif()
  # These engines unload the driver: tests/support/keep_libraries.c says what is lost then.
  if(GM_SANITIZE MATCHES address AND arg_NAME MATCHES "^(example.(engine|pipeline)_vulkan|integrations.ncnn)")
    if(NOT TARGET gm_keep_libraries)
      add_library(gm_keep_libraries SHARED "${PROJECT_SOURCE_DIR}/tests/support/keep_libraries.c")
    endif()
    list(APPEND arg_ENVIRONMENT "LD_PRELOAD=$<TARGET_FILE:gm_keep_libraries>"
      # They free large buffers, of which 256 MiB would wait untouched, each page of it a fault of the kernel's.
      "ASAN_OPTIONS=allocator_may_return_null=1:detect_leaks=1:intercept_tls_get_addr=0:verify_asan_link_order=0:quarantine_size_mb=32")
  endif()
  if(arg_VALGRIND AND GM_VALGRIND AND NOT GM_SANITIZE AND NOT GM_COVERAGE)
    add_test(NAME valgrind.${arg_NAME} WORKING_DIRECTORY "${PROJECT_SOURCE_DIR}"
      COMMAND gm_limit ${slow} ${gm_valgrind_command} $<TARGET_FILE:${program}> ${arg_COMMAND})
    set(labels valgrind)
    if("msan" IN_LIST arg_LABELS)
      string(SHA1 chance "${gm_chance_seed} ${arg_NAME}")
      string(SUBSTRING ${chance} 0 6 chance)
      math(EXPR chance "0x${chance} % 20")
      if(chance)
        list(APPEND labels by_chance)
      else()
        file(APPEND "${gm_chance_list}" "by chance: GM_TEST_SEED=${gm_chance_seed} valgrind.${arg_NAME}\n")
      endif()
    endif()
    if(NOT "by_chance" IN_LIST labels)
      add_dependencies(valgrind_programs ${program})
    endif()
    set_tests_properties(valgrind.${arg_NAME} PROPERTIES
      TIMEOUT ${slow_end} SKIP_RETURN_CODE 77 LABELS "${labels}"
      ENVIRONMENT "${gm_test_environment};${arg_ENVIRONMENT};TESTS_FEW=1;TESTS_NO_DRIVER=1")
  endif()
  # Tests hear nothing of others' promises, those of the user's programs among them. A context that ignores the
  # environment uses the file that all share.
  file(MAKE_DIRECTORY "${CMAKE_BINARY_DIR}/promises/${arg_NAME}")
  list(PREPEND arg_ENVIRONMENT "GM_RESERVE_FOLDER=${CMAKE_BINARY_DIR}/promises/${arg_NAME}" "GM_LINKS_FOLDER=off")
  set_tests_properties(${arg_NAME} PROPERTIES
    TIMEOUT ${end} SKIP_RETURN_CODE 77 LABELS "${arg_LABELS}"
    ENVIRONMENT "${gm_test_environment};${arg_ENVIRONMENT}")
endfunction()

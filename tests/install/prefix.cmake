# Installs the build into AREA/moved by way of another name, so that what the consumers find was moved once.
file(REMOVE_RECURSE "${AREA}")
execute_process(COMMAND "${CMAKE_COMMAND}" --install "${BUILD_DIR}" --prefix "${AREA}/first" COMMAND_ERROR_IS_FATAL ANY)
file(RENAME "${AREA}/first" "${AREA}/moved")

# Nothing installed may name the place it came from.
file(GLOB_RECURSE texts "${AREA}/moved/*.cmake" "${AREA}/moved/*.pc" "${AREA}/moved/*.h")
foreach(text ${texts})
  file(READ "${text}" content)
  string(FIND "${content}" "${BUILD_DIR}" at)
  if(NOT at EQUAL -1)
    message(FATAL_ERROR "${text} names ${BUILD_DIR}")
  endif()
endforeach()

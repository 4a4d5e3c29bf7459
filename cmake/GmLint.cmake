# Targets for who changes gm. What they do is in scripts/lint, so that CI and people run the same.
foreach(name format format-check tidy cppcheck)
  add_custom_target(${name} COMMAND "${PROJECT_SOURCE_DIR}/scripts/lint" ${name} "${CMAKE_BINARY_DIR}" USES_TERMINAL
    WORKING_DIRECTORY "${PROJECT_SOURCE_DIR}" COMMENT "scripts/lint ${name}")
endforeach()

# Python tests: pytest files as ctest tests. tests/run makes the interpreter's environment.
set(REPRISE_CACHE "" CACHE PATH "The cache folder of tests/run: Python environment, real models")
if(NOT REPRISE_CACHE)
  if(DEFINED ENV{REPRISE_CACHE})
    set(REPRISE_CACHE "$ENV{REPRISE_CACHE}")
  else()
    set(REPRISE_CACHE "$ENV{HOME}/.cache/reprise")
  endif()
endif()
set(REPRISE_PYTHON "" CACHE FILEPATH "Python with tests/requirements.txt")
if(NOT REPRISE_PYTHON)
  set(REPRISE_PYTHON "${REPRISE_CACHE}/venv/bin/python")
endif()

# Runs after all of them: no program of this build folder is left.
add_test(NAME no_process_left
  COMMAND ${REPRISE_PYTHON} ${CMAKE_SOURCE_DIR}/tests/testing/leftovers.py ${CMAKE_BINARY_DIR})
set_tests_properties(no_process_left PROPERTIES
  FIXTURES_CLEANUP processes LABELS "unit;golden;e2e" RUN_SERIAL ON)

# reprise_python_test(<name> <file> LABELS <label>... [ALONE]) runs one pytest file against the
# programs of this build folder; ALONE keeps other tests from running beside it. A run that leaves a
# process running fails.
function(reprise_python_test name file)
  cmake_parse_arguments(ARG "ALONE" "" "LABELS" ${ARGN})
  # The folders of tests that pass are removed: an installed tree alone is half a gigabyte.
  add_test(NAME ${name} COMMAND ${REPRISE_PYTHON} -m pytest -q -rf -p no:cacheprovider -p testing.leftovers
    -o tmp_path_retention_policy=failed ${file})
  set_tests_properties(${name} PROPERTIES
    LABELS "${ARG_LABELS}" FIXTURES_REQUIRED processes TIMEOUT 900 RUN_SERIAL ${ARG_ALONE}
    ENVIRONMENT "PYTHONPATH=${CMAKE_SOURCE_DIR}/tests;PYTHONDONTWRITEBYTECODE=1;REPRISE_BUILD_DIR=${CMAKE_BINARY_DIR};REPRISE_CACHE=${REPRISE_CACHE};REPRISE_SOURCE_DIR=${CMAKE_SOURCE_DIR}")
endfunction()

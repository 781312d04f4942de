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

# reprise_python_test(<name> <file> LABELS <label>... [ALONE]) runs one pytest file against the
# programs of this build folder; ALONE keeps other tests from running beside it.
function(reprise_python_test name file)
  cmake_parse_arguments(ARG "ALONE" "" "LABELS" ${ARGN})
  add_test(NAME ${name} COMMAND ${REPRISE_PYTHON} -m pytest -q -rf -p no:cacheprovider ${file})
  set_tests_properties(${name} PROPERTIES
    LABELS "${ARG_LABELS}" TIMEOUT 900 RUN_SERIAL ${ARG_ALONE}
    ENVIRONMENT "PYTHONPATH=${CMAKE_SOURCE_DIR}/tests;PYTHONDONTWRITEBYTECODE=1;REPRISE_BUILD_DIR=${CMAKE_BINARY_DIR};REPRISE_CACHE=${REPRISE_CACHE};REPRISE_SOURCE_DIR=${CMAKE_SOURCE_DIR}")
endfunction()

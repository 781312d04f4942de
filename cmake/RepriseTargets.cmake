# reprise_library(<folder> [DEPS <target>...] [LIBS <imported target>...])
#
# One static library for the folder it is called from, made of every .cc in it. DEPS are other
# reprise libraries (their folders, with / for the path: "runtime/graph"); LIBS are outside
# libraries. The layering of DESIGN is what the DEPS say; tests/structure_test.py checks includes.
#
# Files named *_avx2.cc, *_avx512.cc, *_vnni.cc, *_bf16.cc are compiled for that ISA; nothing in
# them may be called before base/cpu_info has seen the ISA, and they include no inline function
# that other files use too (the linker would keep one copy, perhaps the wrong one).
function(reprise_library folder)
  cmake_parse_arguments(ARG "" "" "DEPS;LIBS" ${ARGN})
  string(REPLACE "/" "_" target ${folder})
  file(GLOB sources CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/${folder}/*.cc)
  list(FILTER sources EXCLUDE REGEX "/(main)\\.cc$")
  if(sources)
    add_library(${target} STATIC ${sources})
    set(scope PUBLIC)
  else()
    add_library(${target} INTERFACE)
    set(scope INTERFACE)
  endif()
  target_include_directories(${target} ${scope}
    $<BUILD_INTERFACE:${CMAKE_SOURCE_DIR}> $<INSTALL_INTERFACE:include/reprise>)
  foreach(dep ${ARG_DEPS})
    string(REPLACE "/" "_" dep_target ${dep})
    target_link_libraries(${target} ${scope} ${dep_target})
  endforeach()
  target_link_libraries(${target} ${scope} ${ARG_LIBS})
  foreach(source ${sources})
    if(source MATCHES "_avx2\\.cc$")
      set_source_files_properties(${source} PROPERTIES COMPILE_OPTIONS "-mavx2;-mfma;-mf16c")
    elseif(source MATCHES "_avx512\\.cc$")
      set_source_files_properties(${source} PROPERTIES COMPILE_OPTIONS
        "-mavx512f;-mavx512bw;-mavx512dq;-mavx512vl;-mfma;-mf16c;-mprefer-vector-width=512")
    elseif(source MATCHES "_vnni\\.cc$")
      set_source_files_properties(${source} PROPERTIES COMPILE_OPTIONS
        "-mavx512f;-mavx512bw;-mavx512dq;-mavx512vl;-mavx512vnni;-mfma;-mf16c")
    elseif(source MATCHES "_bf16\\.cc$")
      set_source_files_properties(${source} PROPERTIES COMPILE_OPTIONS
        "-mavx512f;-mavx512bw;-mavx512dq;-mavx512vl;-mavx512bf16;-mfma;-mf16c")
    endif()
  endforeach()
endfunction()

# reprise_test(<folder> [DEPS ...] [LIBS ...] [LABELS ...])
#
# One GoogleTest program for tests/<folder>, made of every *_test.cc in it. Its cases are found
# when ctest runs.
function(reprise_test folder)
  cmake_parse_arguments(ARG "" "" "DEPS;LIBS;LABELS" ${ARGN})
  string(REPLACE "/" "_" target ${folder})
  file(GLOB sources CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/tests/${folder}/*.cc)
  if(NOT sources)
    return()
  endif()
  set(target ${target}_test)
  add_executable(${target} ${sources})
  target_include_directories(${target} PRIVATE ${CMAKE_SOURCE_DIR})
  foreach(dep ${ARG_DEPS})
    string(REPLACE "/" "_" dep_target ${dep})
    target_link_libraries(${target} PRIVATE ${dep_target})
  endforeach()
  target_link_libraries(${target} PRIVATE ${ARG_LIBS} GTest::gmock GTest::gtest_main)
  target_compile_definitions(${target} PRIVATE REPRISE_SOURCE_DIR="${CMAKE_SOURCE_DIR}")
  if(NOT ARG_LABELS)
    set(ARG_LABELS unit)
  endif()
  gtest_discover_tests(${target} DISCOVERY_MODE PRE_TEST NO_PRETTY_VALUES
    PROPERTIES LABELS "${ARG_LABELS}" TIMEOUT 120)
endfunction()

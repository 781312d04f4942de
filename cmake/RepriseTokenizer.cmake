# The target `tokenizer_ffi`: server/text/tokenizer_ffi, a static library in Rust, built by cargo from the
# versions of its Cargo.lock. The result is kept in the cache folder by the digest of all that it is
# made of, so that other build folders and later runs take it from there.
find_program(REPRISE_CARGO cargo PATHS /usr/bin NO_DEFAULT_PATH)
find_program(REPRISE_CARGO cargo HINTS $ENV{HOME}/.cargo/bin REQUIRED)

set(tokenizer_source ${CMAKE_SOURCE_DIR}/server/text/tokenizer_ffi)
set(tokenizer_library ${CMAKE_BINARY_DIR}/tokenizer/libreprise_tokenizer.a)
file(GLOB tokenizer_files CONFIGURE_DEPENDS ${tokenizer_source}/Cargo.* ${tokenizer_source}/src/*.rs)
set(tokenizer_cache "${REPRISE_CACHE}")
if(NOT tokenizer_cache)
  set(tokenizer_cache "$ENV{REPRISE_CACHE}")
endif()

add_custom_command(OUTPUT ${tokenizer_library}
  COMMAND ${CMAKE_COMMAND} -DCARGO=${REPRISE_CARGO} -DSOURCE=${tokenizer_source}
    -DOUTPUT=${tokenizer_library} "-DCACHE=${tokenizer_cache}"
    -P ${CMAKE_SOURCE_DIR}/cmake/BuildTokenizer.cmake
  DEPENDS ${tokenizer_files} ${CMAKE_SOURCE_DIR}/cmake/BuildTokenizer.cmake
  COMMENT "Building the tokenizers with cargo" USES_TERMINAL VERBATIM)
add_custom_target(tokenizer_ffi_build DEPENDS ${tokenizer_library})

add_library(tokenizer_ffi STATIC IMPORTED GLOBAL)
set_target_properties(tokenizer_ffi PROPERTIES IMPORTED_LOCATION ${tokenizer_library})
target_link_libraries(tokenizer_ffi INTERFACE Threads::Threads ${CMAKE_DL_LIBS} m)
add_dependencies(tokenizer_ffi tokenizer_ffi_build)

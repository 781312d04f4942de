# cmake -DCARGO=... -DSOURCE=... -DOUTPUT=... [-DCACHE=...] -P BuildTokenizer.cmake
#
# Writes OUTPUT, the static library of the Rust crate in SOURCE; where CACHE holds one that was made of
# the same sources by the same compiler, that is taken.
cmake_minimum_required(VERSION 3.25)

get_filename_component(folder ${OUTPUT} DIRECTORY)
get_filename_component(programs ${CARGO} DIRECTORY)
set(rustc rustc)
if(EXISTS ${programs}/rustc)
  set(rustc ${programs}/rustc)
endif()
execute_process(COMMAND ${rustc} --version --verbose OUTPUT_VARIABLE all COMMAND_ERROR_IS_FATAL ANY)
file(GLOB sources ${SOURCE}/Cargo.* ${SOURCE}/src/*.rs)
list(SORT sources)
foreach(source ${sources})
  file(SHA256 ${source} digest)
  string(APPEND all "${digest}\n")
endforeach()
string(SHA256 digest "${all}")
string(SUBSTRING ${digest} 0 16 digest)

set(kept "")
if(CACHE)
  set(kept ${CACHE}/tokenizer/${digest}.a)
endif()
if(kept AND EXISTS ${kept})
  file(COPY_FILE ${kept} ${OUTPUT})
  file(TOUCH ${OUTPUT})
  return()
endif()
# Warnings are for developers of the crate, in its folder; a dependency's path stays out of the library.
# RUSTC_BOOTSTRAP: src/heap.rs sets the hook of failed allocations, which no stable interface does.
execute_process(
  COMMAND ${CMAKE_COMMAND} -E env RUSTC=${rustc} RUSTC_BOOTSTRAP=reprise_tokenizer ${CARGO} build --release --locked --quiet
    --manifest-path ${SOURCE}/Cargo.toml --target-dir ${folder}/cargo
  RESULT_VARIABLE failed)
if(failed)
  message(FATAL_ERROR "cargo could not build ${SOURCE}: packages rustc-web and cargo-web, and the crates "
    "registry, are needed")
endif()
file(COPY_FILE ${folder}/cargo/release/libreprise_tokenizer.a ${OUTPUT})
if(kept)
  file(MAKE_DIRECTORY ${CACHE}/tokenizer)
  file(COPY_FILE ${OUTPUT} ${kept}.new.${digest})
  file(RENAME ${kept}.new.${digest} ${kept})
endif()

# cmake --install: two components.
#
#   programs      bin/reprised, bin/reprise
#   development   the engine and the client as libraries: include/reprise, lib/reprise, and a package
#                 for find_package(reprise) with the targets reprise::runtime and reprise::client
#
# Headers are those that the entry headers include, found when installing, so that no list gets old.
include(GNUInstallDirs)
include(CMakePackageConfigHelpers)

set(REPRISE_PACKAGE_DIR ${CMAKE_INSTALL_LIBDIR}/cmake/reprise)

# reprise_require_built(<component> <build target> <target>...): an install of the component ends before it
# copies anything, and says which command builds it, where a file of the targets is missing.
function(reprise_require_built component build_target)
  set(files)
  foreach(target ${ARGN})
    get_target_property(type ${target} TYPE)
    if(NOT type STREQUAL "INTERFACE_LIBRARY")
      list(APPEND files "$<TARGET_FILE:${target}>")
    endif()
  endforeach()
  install(CODE "
    foreach(file ${files})
      if(NOT EXISTS \"\${file}\")
        message(FATAL_ERROR \"\${file} is not built, and the component ${component} installs it. This builds it:\\n\"
          \"  cmake --build ${CMAKE_BINARY_DIR} --target ${build_target}\\n\"
          \"--component programs installs the programs alone.\")
      endif()
    endforeach()" COMPONENT ${component})
endfunction()

# All libraries of the component `development`: `cmake --build ... --target development`.
add_custom_target(development)

# reprise_development(<target>...): has the libraries built by the target `development`, and asked for by the
# component of that name.
function(reprise_development)
  add_dependencies(development ${ARGN})
  reprise_require_built(development development ${ARGN})
endfunction()

# reprise_install_libraries(<export set> <target>...)
function(reprise_install_libraries set)
  install(TARGETS ${ARGN} EXPORT ${set}
    ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR}/reprise COMPONENT development)
  install(EXPORT ${set} FILE ${set}.cmake NAMESPACE reprise::
    DESTINATION ${REPRISE_PACKAGE_DIR} COMPONENT development)
endfunction()

# reprise_install_headers(<entry header>...): them and all that they include of ours.
function(reprise_install_headers)
  install(CODE "
    set(REPRISE_ENTRY_HEADERS ${ARGN})
    set(REPRISE_HEADER_ROOTS ${CMAKE_SOURCE_DIR} ${CMAKE_BINARY_DIR})
    set(REPRISE_HEADER_DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/reprise)
    include(${CMAKE_SOURCE_DIR}/cmake/InstallHeaders.cmake)" COMPONENT development)
endfunction()

# The target that users link: the engine with its devices.
add_library(runtime INTERFACE)
target_link_libraries(runtime INTERFACE runtime_program runtime_launch runtime_lazy runtime_engine
  runtime_device_cpu runtime_device_reference)
target_compile_features(runtime INTERFACE cxx_std_20)
get_property(runtime_libraries DIRECTORY ${CMAKE_SOURCE_DIR}/runtime PROPERTY BUILDSYSTEM_TARGETS)
list(FILTER runtime_libraries EXCLUDE REGEX "^precompiled_")
reprise_development(${runtime_libraries} proto_recipe)
if(REPRISE_SERVER)
  reprise_development(client client_images proto_model_config proto_inference proto_admin proto_stubs)
  reprise_require_built(programs "reprised reprise" reprised reprise)
endif()
reprise_install_libraries(RepriseRuntime runtime ${runtime_libraries} proto_recipe)
reprise_install_headers(runtime/base/heap.h runtime/engine/engine.h runtime/engine/silent_observer.h
  runtime/device/cpu/cpu_device.h runtime/device/reference/reference_device.h
  runtime/program/runtime.h runtime/engine/session.h runtime/engine/graph_model.h
  runtime/lazy/capture.h runtime/lazy/function.h runtime/lazy/ops.h
  runtime/launch/launcher.h runtime/launch/work_stream.h
  runtime/batching/dispatcher.h runtime/batching/scheduler-inl.h runtime/batching/model_queue-inl.h
  runtime/ops/custom/registered_op.h runtime/ops/custom/op_library.h
  runtime/ops/custom/reprise_op.h runtime/graph/text.h runtime/recipe/compiler.h)

if(REPRISE_SERVER)
  target_compile_features(client PUBLIC cxx_std_20)
  reprise_install_libraries(RepriseClient client proto_model_config proto_inference proto_admin
    proto_stubs)
  reprise_install_headers(client/client.h client/shared_memory.h)
  # The loader of images, without gRPC.
  target_compile_features(client_images PUBLIC cxx_std_20)
  set_target_properties(client_images PROPERTIES EXPORT_NAME images)
  reprise_install_libraries(RepriseImages client_images)
  reprise_install_headers(client/loader.h)
  install(TARGETS reprised reprise RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR} COMPONENT programs)
endif()

configure_package_config_file(cmake/repriseConfig.cmake.in ${CMAKE_BINARY_DIR}/repriseConfig.cmake
  INSTALL_DESTINATION ${REPRISE_PACKAGE_DIR})
write_basic_package_version_file(${CMAKE_BINARY_DIR}/repriseConfigVersion.cmake
  COMPATIBILITY SameMinorVersion)
install(FILES ${CMAKE_BINARY_DIR}/repriseConfig.cmake ${CMAKE_BINARY_DIR}/repriseConfigVersion.cmake
  DESTINATION ${REPRISE_PACKAGE_DIR} COMPONENT development)

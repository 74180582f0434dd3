# This overlay port builds the repository that contains it.
#
#   vcpkg install weft --overlay-ports=packaging/vcpkg
#   vcpkg install 'weft[http,tls]' --overlay-ports=packaging/vcpkg
get_filename_component(SOURCE_PATH "${CMAKE_CURRENT_LIST_DIR}/../../.." ABSOLUTE)

# A part whose feature is not named is not built, even if the system has its dependencies.
set(options -Dtests=false -Dbench=false -Dexamples=false -Dprobes=disabled)
foreach(part IN ITEMS http zlib tls dns)
  set(feature ${part})
  if(part STREQUAL "zlib")
    set(feature http)
  endif()
  if(feature IN_LIST FEATURES)
    list(APPEND options -D${part}=enabled)
  else()
    list(APPEND options -D${part}=disabled)
  endif()
endforeach()
foreach(part IN ITEMS posix sim)
  if(part IN_LIST FEATURES)
    list(APPEND options -D${part}=true)
  else()
    list(APPEND options -D${part}=false)
  endif()
endforeach()

vcpkg_configure_meson(SOURCE_PATH "${SOURCE_PATH}" OPTIONS ${options})
vcpkg_install_meson()
vcpkg_fixup_pkgconfig()
vcpkg_cmake_config_fixup(CONFIG_PATH lib/cmake/weft)
# bin has only scripts, which vcpkg expects in tools.
file(MAKE_DIRECTORY "${CURRENT_PACKAGES_DIR}/tools")
file(RENAME "${CURRENT_PACKAGES_DIR}/bin" "${CURRENT_PACKAGES_DIR}/tools/${PORT}")
foreach(folder IN ITEMS bin include share)
  file(REMOVE_RECURSE "${CURRENT_PACKAGES_DIR}/debug/${folder}")
endforeach()
vcpkg_install_copyright(FILE_LIST "${SOURCE_PATH}/LICENSE")
file(INSTALL "${CMAKE_CURRENT_LIST_DIR}/usage" DESTINATION "${CURRENT_PACKAGES_DIR}/share/${PORT}")

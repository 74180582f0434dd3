"""weft for Conan 2:

    conan create packaging/conan                        with Boost's headers from ConanCenter
    conan create packaging/conan -o '&:system_boost=True'     with those of the system
"""

import os
import re

from conan import ConanFile
from conan.tools.build import check_min_cppstd
from conan.tools.files import copy, load
from conan.tools.layout import basic_layout
from conan.tools.meson import Meson, MesonToolchain

ROOT = os.path.join("..", "..")


class Weft(ConanFile):
    name = "weft"
    description = "Fibers on a few threads, and a capped fiber pool"
    license = "MIT"
    topics = ("fibers", "goroutines", "concurrency", "thread-pool")
    package_type = "library"
    settings = "os", "arch", "compiler", "build_type"
    options = {"shared": [True, False], "fPIC": [True, False], "system_boost": [True, False]}
    default_options = {"shared": False, "fPIC": True, "system_boost": False}
    implements = ["auto_shared_fpic"]

    def set_version(self):
        text = load(self, os.path.join(self.recipe_folder, ROOT, "meson.build"))
        self.version = re.search(r"version: '([^']+)'", text).group(1)

    def export_sources(self):
        copy(self, "*", src=os.path.join(self.recipe_folder, ROOT), dst=self.export_sources_folder,
             excludes=("build*", ".git*", "release/*", "packages/*", "out/*", "*/test_package/*"))

    def requirements(self):
        if not self.options.system_boost:
            self.requires("boost/[>=1.74 <2]", options={"header_only": True})

    def build_requirements(self):
        self.tool_requires("meson/[>=1.0]") if not self.options.system_boost else None

    def validate(self):
        check_min_cppstd(self, 20)

    def layout(self):
        basic_layout(self, src_folder=".")

    def generate(self):
        toolchain = MesonToolchain(self)
        for part in ("tests", "bench", "examples"):
            toolchain.project_options[part] = False
        toolchain.generate()

    def build(self):
        meson = Meson(self)
        meson.configure()
        meson.build()

    def package(self):
        Meson(self).install()
        copy(self, "LICENSE", src=self.source_folder, dst=os.path.join(self.package_folder, "licenses"))

    def package_info(self):
        self.cpp_info.set_property("cmake_target_name", "weft::weft")
        self.cpp_info.set_property("pkg_config_name", "weft")
        self.cpp_info.libs = ["weft"]
        self.cpp_info.system_libs = ["pthread", "dl"]

"""The recipe of weft for Conan 2:

    conan create packaging/conan -s compiler.cppstd=20    uses Boost's headers from ConanCenter
        -o '&:system_boost=True'                          uses Boost, Meson and pkg-config of the system
        -o '&:http=True' -o '&:tls=True'                  also builds weft-http and weft-tls
        -o '&:sim=True'                                   also builds weft-sim for tests; static only
"""

import os
import re

from conan import ConanFile
from conan.errors import ConanInvalidConfiguration
from conan.tools.build import check_min_cppstd
from conan.tools.files import copy, load
from conan.tools.gnu import PkgConfigDeps
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
    # http, tls, dns, posix and sim build weft-http, weft-tls, weft-dns, weft-posix and weft-sim. gzip lets
    # weft-http compress answers. Each option adds the packages that its library requires.
    options = {"shared": [True, False], "fPIC": [True, False], "system_boost": [True, False],
               "http": [True, False], "gzip": [True, False], "tls": [True, False],
               "dns": [True, False], "posix": [True, False], "sim": [True, False]}
    default_options = {"shared": False, "fPIC": True, "system_boost": False,
                       "http": False, "gzip": True, "tls": False, "dns": False,
                       "posix": False, "sim": False}
    implements = ["auto_shared_fpic"]

    def set_version(self):
        text = load(self, os.path.join(self.recipe_folder, ROOT, "meson.build"))
        self.version = re.search(r"version: '([^']+)'", text).group(1)

    def export_sources(self):
        copy(self, "*", src=os.path.join(self.recipe_folder, ROOT), dst=self.export_sources_folder,
             excludes=("build*", ".git*", "release/*", "packages/*", "out/*", "*/test_package/*"))

    def configure(self):
        if not self.options.http:
            self.options.rm_safe("gzip")

    def requirements(self):
        if not self.options.system_boost:
            self.requires("boost/[>=1.74 <2]", options={"header_only": True})
        if self.options.http:
            self.requires("llhttp/[>=9 <10]")
            if self.options.gzip:
                self.requires("zlib/[>=1.2.11 <2]")
        if self.options.tls:
            self.requires("openssl/[>=3 <4]")
        if self.options.dns:
            self.requires("c-ares/[>=1.16 <2]")

    def build_requirements(self):
        if not self.options.system_boost:
            self.tool_requires("meson/[>=1.0]")
            self.tool_requires("pkgconf/[>=2]")

    def validate(self):
        check_min_cppstd(self, 20)
        if self.options.sim and self.options.shared:
            raise ConanInvalidConfiguration("weft-sim needs a static weft: set shared=False")

    def layout(self):
        basic_layout(self, src_folder=".")

    def generate(self):
        toolchain = MesonToolchain(self)
        for part in ("tests", "bench", "examples"):
            toolchain.project_options[part] = False
        # A part that no option enables is not built, even if the system has its dependencies.
        toolchain.project_options["probes"] = "disabled"
        for part, wanted in (("http", self.options.http), ("tls", self.options.tls), ("dns", self.options.dns),
                             ("zlib", self.options.get_safe("gzip"))):
            toolchain.project_options[part] = "enabled" if wanted else "disabled"
        for part in ("posix", "sim"):
            toolchain.project_options[part] = bool(self.options.get_safe(part))
        toolchain.generate()
        PkgConfigDeps(self).generate()

    def build(self):
        meson = Meson(self)
        meson.configure()
        meson.build()

    def package(self):
        Meson(self).install()
        copy(self, "LICENSE", src=self.source_folder, dst=os.path.join(self.package_folder, "licenses"))

    def package_info(self):
        core = self.cpp_info.components["weft"]
        core.set_property("cmake_target_name", "weft::weft")
        core.set_property("pkg_config_name", "weft")
        core.libs = ["weft"]
        core.system_libs = ["pthread", "dl"]
        if not self.options.system_boost:
            core.requires = ["boost::headers"]
        if self.options.http:
            self.add_part("http", ["llhttp::llhttp"] + ["zlib::zlib"] * bool(self.options.gzip))
        if self.options.tls:
            self.add_part("tls", ["openssl::openssl"])
        if self.options.dns:
            self.add_part("dns", ["c-ares::c-ares"])
        if self.options.posix:
            self.add_part("posix", [])
        if self.options.sim:
            self.add_part("sim", [])

    def add_part(self, name, needs):
        part = self.cpp_info.components[name]
        part.set_property("cmake_target_name", f"weft::{name}")
        part.set_property("pkg_config_name", f"weft-{name}")
        part.libs = [f"weft-{name}"]
        part.requires = ["weft"] + needs

# SPDX-License-Identifier: BSD-3-Clause
# Spack recipe of convoy, for Spack 1.0 and newer. Spack itself has not run it yet. tests/packaging/recipes.sh runs it on
# stand-ins for Spack's classes, and checks that CMakeLists.txt has the options that it sets. packaging/README.md says
# how it is used.
from spack_repo.builtin.build_systems.cmake import CMakePackage

from spack.package import *


class Convoy(CMakePackage):
    """Trains neural networks on clusters of CPU nodes over MPI, as a C library and a command."""

    homepage = "file://share/doc/convoy/README.md"

    # The tarball lies in this folder, or where `spack install` is told to look (see packaging/README.md).
    url = "file:///opt/sources/convoy-0.3.0.tar.xz"

    license("BSD-3-Clause")

    # `spack checksum` prints the line with the checksum of your tarball.
    version("0.3.0")

    variant("onednn", default=True, description="Fast kernels from oneDNN")
    variant("openmp", default=True, description="Several compute threads a rank")
    variant("jpeg", default=True, description="Read JPEG images")
    variant("png", default=True, description="Read PNG images")
    variant("lmdb", default=True, description="Read and write LMDB databases")
    variant("hdf5", default=True, description="Read and write HDF5 files")
    variant("cfitsio", default=True, description="Read FITS files")
    variant("libdeflate", default=True, description="Unpack chunks of HDF5 files in several threads")
    variant("protobuf", default=True, description="Read and write ONNX files, write TensorBoard's event files")
    variant("xxhash", default=True, description="XXH3 checksums, else CRC-32C")
    variant("lab", default=True, description="All verbs of the command; without it it trains, tests and predicts")
    variant("simgrid", default=False, description="convoy simulate: training on simulated nodes")

    depends_on("c", type="build")
    depends_on("cmake@3.20:", type="build")
    depends_on("pkgconfig", type="build")
    depends_on("mpi")
    depends_on("libyaml")
    depends_on("onednn@2.6:3", when="+onednn")
    depends_on("jpeg", when="+jpeg")
    depends_on("libspng", when="+png")
    depends_on("lmdb", when="+lmdb")
    # Each rank reads its own files, so the serial HDF5 is enough, and it is not bound to one MPI.
    depends_on("hdf5@1.10:", when="+hdf5")
    depends_on("cfitsio", when="+cfitsio")
    depends_on("libdeflate", when="+libdeflate")
    depends_on("protobuf-c", when="+protobuf")
    depends_on("xxhash", when="+xxhash")
    depends_on("simgrid@3.32:+smpi", when="+simgrid")

    def cmake_args(self):
        options = {
            "ONEDNN": "onednn",
            "OPENMP": "openmp",
            "JPEG": "jpeg",
            "SPNG": "png",
            "LMDB": "lmdb",
            "HDF5": "hdf5",
            "CFITSIO": "cfitsio",
            "LIBDEFLATE": "libdeflate",
            "PROTOBUF_C": "protobuf",
            "XXHASH": "xxhash",
            "LAB": "lab",
            "SIMGRID": "simgrid",
        }
        args = [self.define_from_variant("CONVOY_WITH_" + option, variant) for option, variant in options.items()]
        args.append(self.define("CONVOY_TESTS", self.run_tests))
        args.append(self.define("MPI_C_COMPILER", self.spec["mpi"].mpicc))
        return args

    @run_after("install")
    @on_package_attributes(run_tests=True)
    def selftest(self):
        Executable(join_path(self.prefix.bin, "convoy"))("selftest")

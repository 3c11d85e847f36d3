"""Find what to ship: setuptools cannot search a root that is itself a package, and would ship this file with it."""

from setuptools import find_packages, setup
from setuptools.command.build_py import build_py

NOT_SHIPPED = ("tests", "tools", "benchmarks", "docs", "build", "dist")
found = find_packages(".", exclude=[pattern for name in NOT_SHIPPED for pattern in (name, f"{name}.*")])


class BuildModules(build_py):
    """Build the modules of every package; of the root, only its interface."""

    def find_package_modules(self, package: str, package_dir: str) -> list[tuple[str, str, str]]:
        """Return (package, module, file) of the modules to ship."""
        modules = super().find_package_modules(package, package_dir)
        return [row for row in modules if package != "telegrad" or row[1] == "__init__"]


setup(packages=["telegrad", *(f"telegrad.{name}" for name in found)], cmdclass={"build_py": BuildModules})

# Cross-compiles for 64-bit Arm, and runs what was built in user-mode emulation.
# Debian and Ubuntu: apt-get install g++-aarch64-linux-gnu qemu-user-static
set(CMAKE_SYSTEM_NAME Linux)
set(CMAKE_SYSTEM_PROCESSOR aarch64)
set(CMAKE_CXX_COMPILER aarch64-linux-gnu-g++)
find_program(emulator NAMES qemu-aarch64-static qemu-aarch64 REQUIRED)
set(CMAKE_CROSSCOMPILING_EMULATOR ${emulator} -L /usr/aarch64-linux-gnu)

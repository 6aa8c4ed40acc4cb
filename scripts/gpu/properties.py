# SPDX-License-Identifier: BSD-3-Clause
"""properties.py FILE [DEVICE | TEXT.json]: writes what cuDNN 9.8 or newer knows of a GPU into FILE, as JSON.

With such a text cuDNN plans on machines without a GPU; tests/kernel/h200.json is one that was written by hand. DEVICE is
the number of the device, 0 if not given. With TEXT.json cuDNN reads that text and gives it back, which needs no GPU. It
needs Python alone, and libcudnn.so.9, or the file that CONVOY_CUDNN names.
"""
import ctypes, json, os, sys

# Numbers of cudnn_graph.h.
DEVICEPROP, CHAR, INT32, DEVICE_ID, JSON_TEXT = 38, 24, 23, 2700, 2702


def main():
    path, source = sys.argv[1], sys.argv[2] if len(sys.argv) > 2 else "0"
    if os.environ.get("CONVOY_CUDNN") == "off":
        sys.exit("properties: the variable CONVOY_CUDNN says off")
    try:
        cudnn = ctypes.CDLL(os.environ.get("CONVOY_CUDNN") or "libcudnn.so.9")
    except OSError as fault:
        sys.exit(f"properties: cuDNN cannot be loaded: {fault}")
    cudnn.cudnnGetErrorString.restype = ctypes.c_char_p
    cudnn.cudnnGetVersion.restype = ctypes.c_size_t
    properties = ctypes.c_void_p()

    def call(name, *arguments):
        code = getattr(cudnn, name)(*arguments)
        if code:
            sys.exit(f"properties: cuDNN {cudnn.cudnnGetVersion()}: {name} fails with {code}: {cudnn.cudnnGetErrorString(code).decode()}")

    def set_attribute(name, kind, count, data):
        call("cudnnBackendSetAttribute", properties, name, kind, ctypes.c_int64(count), data)

    call("cudnnBackendCreateDescriptor", DEVICEPROP, ctypes.byref(properties))
    if source.isdigit():
        set_attribute(DEVICE_ID, INT32, 1, ctypes.byref(ctypes.c_int32(int(source))))
    else:
        with open(source, "rb") as file:
            text = file.read()
        set_attribute(JSON_TEXT, CHAR, len(text), text)
    call("cudnnBackendFinalize", properties)
    room, used = 1 << 16, ctypes.c_int64()
    text = ctypes.create_string_buffer(room)
    call("cudnnBackendGetAttribute", properties, JSON_TEXT, CHAR, ctypes.c_int64(room), ctypes.byref(used), text)
    found = json.loads(text.value)
    with open(path, "w") as file:
        json.dump(found, file)
        file.write("\n")
    print(f"cuDNN {cudnn.cudnnGetVersion()}: {len(found)} properties of {found.get('deviceName', 'the device')} in {path}")


main()

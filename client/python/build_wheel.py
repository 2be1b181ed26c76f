"""Builds the wheel of this folder: what pip calls (PEP 517), with nothing but the standard library.

So `pip install ./client/python` needs no network and no setuptools, and the same source gives the same
bytes: members are sorted and have the time of SOURCE_DATE_EPOCH (else 1980). The version is that of
client/lib/kota.h.
"""
import base64
import hashlib
import os
import sys
import time
import zipfile

HERE = os.path.dirname(os.path.abspath(__file__))
NAME, PACKAGE = "kota_client", "kota"
METADATA = """\
Metadata-Version: 2.1
Name: kota-client
Version: {version}
Summary: Client of kotad, a terrain server
License: MIT
Requires-Python: >=3.9
Provides-Extra: numpy
Requires-Dist: numpy; extra == 'numpy'
Description-Content-Type: text/markdown

{readme}"""
WHEEL = "Wheel-Version: 1.0\nGenerator: build_wheel\nRoot-Is-Purelib: true\nTag: py3-none-any\n"


def version():
    sys.path.insert(0, HERE)
    from kota.version import VERSION
    return VERSION


def read(*path):
    with open(os.path.join(HERE, *path), "rb") as file:
        return file.read()


def infos():
    """{name: bytes} of the folder .dist-info, without RECORD."""
    folder = f"{NAME}-{version()}.dist-info"
    text = METADATA.format(version=version(), readme=read("README.md").decode())
    return folder, {f"{folder}/METADATA": text.encode(), f"{folder}/WHEEL": WHEEL.encode()}


def write(path, members, record):
    lines = []
    for name in sorted(members):
        digest = base64.urlsafe_b64encode(hashlib.sha256(members[name]).digest()).rstrip(b"=").decode()
        lines.append(f"{name},sha256={digest},{len(members[name])}\n")
    members = {**members, record: ("".join(lines) + f"{record},,\n").encode()}
    when = time.gmtime(max(int(os.environ.get("SOURCE_DATE_EPOCH", 0)), 315532800))[:6]
    with zipfile.ZipFile(path, "w") as archive:
        for name in sorted(members):
            info = zipfile.ZipInfo(name, when)
            info.external_attr = 0o100644 << 16
            info.compress_type = zipfile.ZIP_DEFLATED
            archive.writestr(info, members[name])


def build_wheel(wheel_directory, config_settings=None, metadata_directory=None):
    folder, members = infos()
    for name in sorted(os.listdir(os.path.join(HERE, PACKAGE))):
        if name.endswith((".py", ".typed")):
            members[f"{PACKAGE}/{name}"] = read(PACKAGE, name)
    members[f"{PACKAGE}/version.py"] = f'"""Of the build."""\nVERSION = "{version()}"\n'.encode()
    name = f"{NAME}-{version()}-py3-none-any.whl"
    write(os.path.join(wheel_directory, name), members, f"{folder}/RECORD")
    return name


def build_editable(wheel_directory, config_settings=None, metadata_directory=None):
    """pip install -e: a file that adds this folder to the path."""
    folder, members = infos()
    members[f"{NAME}.pth"] = (HERE + "\n").encode()
    name = f"{NAME}-{version()}-py3-none-any.whl"
    write(os.path.join(wheel_directory, name), members, f"{folder}/RECORD")
    return name


def build_sdist(sdist_directory, config_settings=None):
    raise NotImplementedError("there is no source distribution: use the wheel, or the source archive of kota")

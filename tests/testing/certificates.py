"""Certificates for tests, made by openssl."""

import subprocess


def _openssl(*arguments):
    done = subprocess.run(["openssl", *map(str, arguments)], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


EC = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1")
RSA = ("-newkey", "rsa:2048")


class Authority:
    """Signs certificates, which are files below `folder`."""

    def __init__(self, folder, name="authority"):
        folder.mkdir(parents=True, exist_ok=True)
        self.folder, self.name = folder, name
        self.certificate, self.key = folder / f"{name}.crt", folder / f"{name}.key"
        _openssl("req", "-x509", *EC, "-nodes", "-days", "2", "-subj", f"/CN={name}", "-keyout",
                 self.key, "-out", self.certificate)

    def sign(self, name, common_name="localhost", algorithm=EC):
        """(certificate, key) for `common_name`, of localhost."""
        certificate, key, request, names = (
            self.folder / f"{name}.{end}" for end in ("crt", "key", "csr", "ext"))
        names.write_text("subjectAltName=DNS:localhost,IP:127.0.0.1\n")
        _openssl("req", *algorithm, "-nodes", "-subj", f"/O=Example/CN={common_name}", "-keyout", key,
                 "-out", request)
        _openssl("x509", "-req", "-in", request, "-CA", self.certificate, "-CAkey", self.key,
                 "-CAcreateserial", "-days", "2", "-extfile", names, "-out", certificate)
        return certificate, key

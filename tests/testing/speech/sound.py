"""Sound files of samples, by libsndfile, and their contents once they are read again."""

import ctypes
import pathlib
import tempfile

import numpy as np

# Of sndfile.h: the container, and how its samples are stored.
FORMATS = {"wav": 0x010000 | 0x0006, "wav16": 0x010000 | 0x0002, "flac": 0x170000 | 0x0002,
           "ogg": 0x200000 | 0x0060, "opus": 0x200000 | 0x0064, "mp3": 0x230000 | 0x0082}
READ, WRITE = 0x10, 0x20


class Info(ctypes.Structure):
    _fields_ = [("frames", ctypes.c_int64), ("samplerate", ctypes.c_int), ("channels", ctypes.c_int),
                ("format", ctypes.c_int), ("sections", ctypes.c_int), ("seekable", ctypes.c_int)]


def _library():
    library = ctypes.CDLL("libsndfile.so.1")
    library.sf_open.restype = ctypes.c_void_p
    library.sf_open.argtypes = [ctypes.c_char_p, ctypes.c_int, ctypes.POINTER(Info)]
    for name in ("sf_writef_float", "sf_readf_float"):
        function = getattr(library, name)
        function.restype = ctypes.c_int64
        function.argtypes = [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int64]
    library.sf_close.argtypes = [ctypes.c_void_p]
    return library


def encode(samples, rate=16000, kind="wav"):
    """Returns the bytes of a file with `samples`, [n] or [n, channels]."""
    samples = np.ascontiguousarray(samples, np.float32)
    channels = 1 if samples.ndim == 1 else samples.shape[1]
    library = _library()
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder, "sound")
        info = Info(samplerate=rate, channels=channels, format=FORMATS[kind])
        file = library.sf_open(bytes(path), WRITE, ctypes.byref(info))
        assert file, f"libsndfile writes no {kind} of {channels} channels at {rate}"
        # In parts: the encoder of Vorbis takes a whole call's samples from the stack.
        for begin in range(0, len(samples), 4096):
            part = samples[begin:begin + 4096]
            assert library.sf_writef_float(file, part.ctypes.data, len(part)) == len(part)
        library.sf_close(file)
        return path.read_bytes()


def decode(data):
    """Samples [n, channels] and their rate."""
    library = _library()
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder, "sound")
        path.write_bytes(data)
        info = Info()
        file = library.sf_open(bytes(path), READ, ctypes.byref(info))
        assert file
        samples = np.zeros((info.frames, info.channels), np.float32)
        count = library.sf_readf_float(file, samples.ctypes.data, info.frames)
        library.sf_close(file)
        return samples[:count], info.samplerate


def speechlike(rng, seconds, rate=16000):
    """Something that changes as speech does: gliding tones in bursts, and noise."""
    t = np.arange(int(seconds * rate)) / rate
    tones = sum(np.sin(2 * np.pi * (120 * k + 40 * np.sin(2 * np.pi * (0.7 + k / 5) * t)) * t) / k for k in (1, 2, 5, 9))
    bursts = 0.5 + 0.5 * np.sin(2 * np.pi * 2.3 * t + rng.uniform(0, 6))
    return (0.1 * tones * bursts + 0.01 * rng.normal(size=len(t))).astype(np.float32)

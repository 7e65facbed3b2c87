"""What can go wrong between a data set's address and its arrays."""


class DatasetError(RuntimeError):
    """A data set of the paper could not be fetched or read."""


class DownloadError(DatasetError):
    """The server could not be reached, refused the request, or broke the connection."""


class ChecksumError(DatasetError):
    """A downloaded file does not have the recorded SHA-256 checksum."""


class DamagedFileError(DatasetError):
    """An existing file is incomplete or has been changed."""


class CacheFolderError(DatasetError):
    """The cache folder cannot be read or written to."""

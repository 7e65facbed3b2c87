"""What can go wrong between a data set's address and its arrays."""


class DatasetError(RuntimeError):
    """A data set of the paper could not be fetched or read."""


class DownloadError(DatasetError):
    """The address could not be reached, refused, or broke off."""


class ChecksumError(DatasetError):
    """What was downloaded is not the file whose SHA-256 is on record."""


class DamagedFileError(DatasetError):
    """A file that was there already is half-written or has been changed."""


class CacheFolderError(DatasetError):
    """The cache folder cannot be read or written to."""

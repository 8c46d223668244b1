import pytest


@pytest.fixture
def write(tmp_path, request):
    """Write a graph file, by default with the module's own ``SUFFIX``, and return its path."""
    usual = f"graph{getattr(request.module, 'SUFFIX', '.txt')}"

    def write(content, name=usual):
        path = tmp_path / name
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return path

    return write

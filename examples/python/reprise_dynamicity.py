"""How much the shapes of batches vary: `reprise dynamicity` over any iterable of batches.

    from reprise_dynamicity import dynamicity
    print(dynamicity(loader))       # a batch: an array or tensor, a list or tuple of them, or a dict
"""

import subprocess
import tempfile


def dynamicity(batches, reprise="reprise", arguments=()):
    """Returns the report as text. `reprise` is the program; `arguments` are more of its, such as --json."""
    with tempfile.NamedTemporaryFile("w", suffix=".csv") as file:
        for i, batch in enumerate(batches):
            if not isinstance(batch, (dict, list, tuple)):
                batch = [batch]
            named = batch if isinstance(batch, dict) else {f"input{k}": x for k, x in enumerate(batch)}
            if i == 0:
                print(*named, sep=",", file=file)
            print(*("x".join(map(str, x.shape)) or "1" for x in named.values()), sep=",", file=file)
        file.flush()
        return subprocess.run([reprise, "dynamicity", "--file", file.name, *arguments],
                              check=True, capture_output=True, text=True).stdout

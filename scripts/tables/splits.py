"""What another reading of a split does to its figures."""

from tables.markdown import markdown, runs, spread


def by_class() -> str:
    """Return each model's test F1 on the split by class, and what there was to be told apart."""
    found: dict[tuple[str, str], list[dict[str, str]]] = {}
    for row in runs("class_split.csv"):
        found.setdefault((row["dataset"], row["model"]), []).append(row)
    rows = [
        [
            dataset,
            f"`{model}`",
            spread(some, "test_f1"),
            f"{some[0]['classes_tested']} of {some[0]['classes']}",
            spread(some, "largest_class"),
        ]
        for (dataset, model), some in found.items()
    ]
    return markdown(["data set", "model", "test F1", "classes tested", "largest class, %"], rows, text=2)

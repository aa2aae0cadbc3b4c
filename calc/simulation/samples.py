"""Samples and labels: what a network can be trained on, and the digits that everyone has."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy

from calc.core.arguments import number, whole_number
from calc.core.arrays import Counts, Single
from calc.core.errors import InputError, abbreviated, extra

if TYPE_CHECKING:
    from numpy.typing import ArrayLike


class Split(NamedTuple):
    """Samples and their labels, to train on and to test with."""

    X_train: Single
    y_train: Counts
    X_test: Single
    y_test: Counts


def digits(seed: int = 0, test_fraction: float = 0.2) -> Split:
    """The handwritten digits that come with scikit-learn: 1797 images of 8 × 8 pixels, 0 to 1.

    The seed decides which of them are for testing. Nothing is downloaded.

    Source: alpaydin1998optical

    >>> split = digits()
    >>> split.X_train.shape, split.X_test.shape
    ((1437, 64), (360, 64))
    """
    with extra("digits()", "scikit-learn", "simulation"):
        from sklearn.datasets import load_digits
    fraction = number("digits(): test_fraction", test_fraction, above=0.0)
    if fraction >= 1:
        raise InputError(
            f"digits(): test_fraction must be below 1; got {abbreviated(test_fraction)}"
        )
    X, y = load_digits(return_X_y=True)
    X = (X / 16).astype(numpy.float32)
    order = numpy.random.default_rng(whole_number("seed", seed, at_least=0)).permutation(len(X))
    held_back = -int(-fraction * len(X) // 1)
    test, train = order[:held_back], order[held_back:]
    return Split(X[train], y[train], X[test], y[test])


def checked_samples(X: ArrayLike, width: int | None = None) -> Single:
    """Samples as rows of finite 32-bit numbers, as many in each as a network has inputs."""
    try:
        samples = numpy.asarray(X, dtype=numpy.float32)
    except (TypeError, ValueError):
        raise InputError(f"X must be rows of numbers; got {abbreviated(X)}") from None
    if samples.ndim != 2 or width not in (None, samples.shape[1]):
        wide = "numbers" if width is None else f"{width} numbers each"
        raise InputError(f"X must be rows of {wide}; got shape {samples.shape}")
    if not len(samples):
        raise InputError("X must hold at least one sample; got none")
    if not numpy.isfinite(samples).all():
        where = int(numpy.argwhere(~numpy.isfinite(samples))[0, 0])
        raise InputError(f"X must be finite; row {where} holds a NaN or an infinity")
    return samples


def checked_labels(y: ArrayLike, samples: int, classes: int | None = None) -> Counts:
    """Labels as whole numbers from 0, one for each sample, none beyond a network's outputs."""
    labels = numpy.asarray(y)
    if labels.shape != (samples,):
        raise InputError(
            f"y must hold a label for each of the {samples} samples; got shape {labels.shape}"
        )
    if labels.dtype.kind not in "iu":
        raise InputError(f"y must hold whole numbers; got {labels.dtype} in {abbreviated(y)}")
    out = labels < 0 if classes is None else (labels < 0) | (labels >= classes)
    if out.any():
        most = "" if classes is None else f" to {classes - 1}, one for each output"
        raise InputError(
            f"y must hold labels from 0{most}; got {labels[out][0]} in row {numpy.argmax(out)}"
        )
    return labels.astype(numpy.int64)


def several_classes(labels: Counts) -> None:
    """Training on a single class teaches a network to answer without looking."""
    if (labels == labels[0]).all():
        raise InputError(f"y must hold at least two classes to learn; every label is {labels[0]}")


def checked_split(data: Any, inputs: int, classes: int) -> Split:
    """Training and test data that fit a network of so many inputs and outputs."""
    try:
        train, train_labels, test, test_labels = data
    except (TypeError, ValueError):
        raise InputError(
            f"data must be four arrays: X_train, y_train, X_test, y_test; got {abbreviated(data)}"
        ) from None
    halves: list[Any] = []
    for samples, labels in ((train, train_labels), (test, test_labels)):
        checked = checked_samples(samples, inputs)
        halves += [checked, checked_labels(labels, len(checked), classes)]
    several_classes(halves[1])
    return Split(*map(numpy.ascontiguousarray, halves))

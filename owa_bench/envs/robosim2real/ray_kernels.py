"""The compiled ray caster: boxes, capsules and cylinders under one lamp, seen by one camera.

float64 additions, products, quotients and square roots on one thread and in a fixed order, so equal
shapes give equal bytes.
"""

import math

import numba
import numpy as np
import numpy.typing as npt

from owa_bench.envs.robosim2real.world import Vector
from owa_bench.records.observables import Floats

CellPixels = npt.NDArray[np.uint8]
ShapeKinds = npt.NDArray[np.int64]
BOX, CAPSULE, CYLINDER, RING, BALL = range(5)  # the last two are marks
# Columns of a shape: place, rotation (its columns are the shape's axes), half sizes,
# colour. A capsule's and a cylinder's sizes are radius, radius, half length.
TURN, SIZE, COLOUR, NUMBERS = 3, 12, 15, 18
FLOOR = -0.4  # m, the feet of a table
_EYE, _AIM = (1.17, -0.9, 0.93), (0.4, 0.0, 0.2)
_SLOPE = 0.48  # half of the picture's height at a distance of 1
_LAMP = (-0.2, -0.4, 0.9)
_AMBIENT = 0.5  # share of the light that reaches a place in shadow
_CLEAR = 0.75  # share of a ball's own colour
_BAND = 0.012  # m, of a ring
_LIES = 2e-3  # m that a ring may be below what it lies on
_ABOVE = 1e-4  # m off a surface, where a shadow ray starts
_CELLS = 32  # across the light, a side
_NONE = math.inf
_WALL, _GROUND = (0.90, 0.92, 0.94), (0.66, 0.69, 0.73)


def unit(vector: Vector) -> Vector:
    """Return a vector of length 1 in the direction of another."""
    length = math.sqrt(sum(value * value for value in vector))
    return (vector[0] / length, vector[1] / length, vector[2] / length)


def cross(a: Vector, b: Vector) -> Vector:
    """Return the cross product.

    Args:
        a: The first.
        b: The second.
    """
    return (a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0])


def _view(ahead: Vector) -> Floats:
    """Return the rows right, up and ahead of a view."""
    forward = unit(ahead)
    right = unit(cross(forward, (0.0, 0.0, 1.0)))
    return np.array([right, cross(right, forward), forward])


_EYE_AT = np.array(_EYE)
_CAMERA = _view((_AIM[0] - _EYE[0], _AIM[1] - _EYE[1], _AIM[2] - _EYE[2]))
_LIGHT = _view(_LAMP)  # across, across, towards the lamp


@numba.njit(cache=True)
def _slab(at, way, half):  # pragma: no cover
    """Return where a ray enters and leaves the space between two planes."""
    if -1e-12 < way < 1e-12:
        way = 1e-12
    first, second = (-half - at) / way, (half - at) / way
    return min(first, second), max(first, second)


@numba.njit(cache=True)
def _box(row, x, y, z, a, b, c):  # pragma: no cover
    near, far = -_NONE, _NONE
    for k in range(3):
        at = row[3 + k] * x + row[6 + k] * y + row[9 + k] * z
        way = row[3 + k] * a + row[6 + k] * b + row[9 + k] * c
        first, second = _slab(at, way, row[SIZE + k])
        near, far = max(near, first), min(far, second)
    return near if 0.0 < near <= far else _NONE


@numba.njit(cache=True)
def _tube(row, x, y, z, a, b, c, flat):  # pragma: no cover
    """Return the ray's hit of a cylinder, with flat ends or round ones."""
    radius, half = row[SIZE], row[SIZE + 2]
    p, q, r = row[5], row[8], row[11]
    along, at = p * a + q * b + r * c, p * x + q * y + r * z
    dd, od, oo = a * a + b * b + c * c, a * x + b * y + c * z, x * x + y * y + z * z
    square, middle = max(1e-12, dd - along * along), od - at * along
    root = middle * middle - square * (oo - at * at - radius * radius)
    if root < 0.0:
        return _NONE
    root = math.sqrt(root)
    t = -(middle + root) / square
    height = at + t * along
    if -half <= height <= half:
        return t if t > 0.0 else _NONE
    end = half if height > 0.0 else -half
    if flat:
        if -1e-12 < along < 1e-12:
            return _NONE
        t = (end - at) / along
        return t if t > 0.0 and abs(middle + square * t) < root else _NONE
    x, y, z = x - end * p, y - end * q, z - end * r
    od, oo = a * x + b * y + c * z, x * x + y * y + z * z
    root = od * od - dd * (oo - radius * radius)
    if root < 0.0:
        return _NONE
    t = -(od + math.sqrt(root)) / dd
    return t if t > 0.0 else _NONE


@numba.njit(cache=True)
def _hit(kind, row, x, y, z, a, b, c):  # pragma: no cover
    """Return how far along a ray a shape is, its start relative to the shape's place."""
    if kind == BOX:
        return _box(row, x, y, z, a, b, c)
    return _tube(row, x, y, z, a, b, c, kind == CYLINDER)


@numba.njit(cache=True)
def _normal(kind, row, x, y, z):  # pragma: no cover
    """Return the outward normal at a place of a shape's surface, relative to its middle."""
    if kind == BOX:
        best, axis, sign = -1.0, 0, 1.0
        for k in range(3):
            at = (row[3 + k] * x + row[6 + k] * y + row[9 + k] * z) / row[SIZE + k]
            if abs(at) > best:
                best, axis, sign = abs(at), k, 1.0 if at > 0.0 else -1.0
        return sign * row[3 + axis], sign * row[6 + axis], sign * row[9 + axis]
    radius, half = row[SIZE], row[SIZE + 2]
    p, q, r = row[5], row[8], row[11]
    at = p * x + q * y + r * z
    if kind == CYLINDER and abs(at) > half - 1e-9:
        sign = 1.0 if at > 0.0 else -1.0
        return sign * p, sign * q, sign * r
    at = min(half, max(-half, at))
    return (x - at * p) / radius, (y - at * q) / radius, (z - at * r) / radius


@numba.njit(cache=True)
def _span(across, ahead, radius, slope):  # pragma: no cover
    """Return what a ball covers in one direction, from -1 to 1 across the picture."""
    square = ahead * ahead - radius * radius
    if ahead <= radius or square < 1e-9:
        return -1.0, 1.0
    root = radius * math.sqrt(across * across + square)
    return (across * ahead - root) / square / slope, (across * ahead + root) / square / slope


@numba.njit(cache=True)
def _pixels_of(low, high, count):  # pragma: no cover
    """Return the first pixel, and one past the last, that a part of -1 to 1 may cover."""
    half = 0.5 * count
    first = math.floor(half * (max(-1.0, min(1.0, low)) + 1.0) - 0.5)
    last = math.ceil(half * (max(-1.0, min(1.0, high)) + 1.0) + 0.5)
    return int(min(count, max(0, first))), int(min(count, max(0, last)))


@numba.njit(cache=True)
def _window(kind, row, wide, high, width, height):  # pragma: no cover
    """Return the columns and lines that a shape may cover: those of its corners or its ends."""
    left, right, low, top = _NONE, -_NONE, _NONE, -_NONE
    for corner in range(8 if kind == BOX else 2):
        radius = 0.0 if kind == BOX else row[SIZE]
        sides = (2 * (corner >> 1 & 1) - 1, 2 * (corner >> 2) - 1, 2 * (corner & 1) - 1)
        across = up = ahead = 0.0
        for r in range(3):
            at = row[r] - _EYE_AT[r] + sides[2] * row[TURN + 3 * r + 2] * row[SIZE + 2]
            if kind == BOX:
                at += sides[0] * row[TURN + 3 * r] * row[SIZE]
                at += sides[1] * row[TURN + 3 * r + 1] * row[SIZE + 1]
            across += _CAMERA[0, r] * at
            up += _CAMERA[1, r] * at
            ahead += _CAMERA[2, r] * at
        first, second = _span(across, ahead, radius, wide)
        left, right = min(left, first), max(right, second)
        first, second = _span(up, ahead, radius, high)
        low, top = min(low, first), max(top, second)
    first, last = _pixels_of(left, right, width)
    upper, lower = _pixels_of(-top, -low, height)
    return first, last, upper, lower


@numba.njit(cache=True)
def _lamp_grid(kinds, rows):  # pragma: no cover
    """Return which shapes each cell of a grid across the light may hold, as bits; its frame."""
    low, high = np.full(2, _NONE), np.full(2, -_NONE)
    ends = np.empty((len(rows), 2, 2))
    for n in range(len(rows)):
        row = rows[n]
        for k in range(2):
            place, reach = 0.0, 0.0 if kinds[n] == BOX else row[SIZE]
            for r in range(3):
                place += _LIGHT[k, r] * row[r]
            for c in range(0 if kinds[n] == BOX else 2, 3):
                along = 0.0
                for r in range(3):
                    along += _LIGHT[k, r] * row[TURN + 3 * r + c]
                reach += abs(along) * row[SIZE + c]
            ends[n, k] = place - reach, place + reach
            low[k], high[k] = min(low[k], place - reach), max(high[k], place + reach)
    cells = np.zeros((_CELLS, _CELLS), np.int64)
    frame = np.empty(4)
    for k in range(2):
        frame[2 * k], frame[2 * k + 1] = low[k], _CELLS / (high[k] - low[k] + _ABOVE)
    for n in range(len(rows)):
        first = ((ends[n, :, 0] - low) * frame[1::2]).astype(np.int64)
        last = ((ends[n, :, 1] - low) * frame[1::2]).astype(np.int64)
        for i in range(first[0], last[0] + 1):
            for j in range(first[1], last[1] + 1):
                cells[i, j] |= 1 << n
    return cells, frame


@numba.njit(cache=True)
def _in_shadow(kinds, rows, cells, frame, own, x, y, z):  # pragma: no cover
    """Return whether a shape other than a place's own, which is convex, is before the lamp."""
    a, b, c = _LIGHT[2, 0], _LIGHT[2, 1], _LIGHT[2, 2]
    u = (_LIGHT[0, 0] * x + _LIGHT[0, 1] * y + _LIGHT[0, 2] * z - frame[0]) * frame[1]
    v = (_LIGHT[1, 0] * x + _LIGHT[1, 1] * y + _LIGHT[1, 2] * z - frame[2]) * frame[3]
    if not (0.0 <= u < _CELLS and 0.0 <= v < _CELLS):
        return False
    bits = cells[int(u), int(v)]
    n = 0
    while bits:
        if bits & 1 and n != own:
            row = rows[n]
            if _hit(kinds[n], row, x - row[0], y - row[1], z - row[2], a, b, c) < _NONE:
                return True
        bits >>= 1
        n += 1
    return False


@numba.njit(cache=True)
def _light(kinds, rows, cells, frame, own, x, y, z, n, m, k):  # pragma: no cover
    """Return the light at a place with the normal n, m, k."""
    share = n * _LIGHT[2, 0] + m * _LIGHT[2, 1] + k * _LIGHT[2, 2]
    if share <= 0.0:
        return _AMBIENT * (1.0 + 0.3 * share)
    x, y, z = x + _ABOVE * n, y + _ABOVE * m, z + _ABOVE * k
    if _in_shadow(kinds, rows, cells, frame, own, x, y, z):
        return _AMBIENT
    return _AMBIENT + (1.0 - _AMBIENT) * share


@numba.njit(cache=True)
def _blend(pixels, i, j, red, green, blue, light, share):  # pragma: no cover
    """Put a colour over a pixel."""
    left, light = 1.0 - share, 255.0 * light
    pixels[i, j, 0] = int(share * min(255.0, red * light) + left * pixels[i, j, 0] + 0.5)
    pixels[i, j, 1] = int(share * min(255.0, green * light) + left * pixels[i, j, 1] + 0.5)
    pixels[i, j, 2] = int(share * min(255.0, blue * light) + left * pixels[i, j, 2] + 0.5)


@numba.njit(cache=True)
def _ways(wide, high, width, height):  # pragma: no cover
    """Return the direction of each pixel's ray, 1 long ahead."""
    ways = np.empty((height, width, 3))
    for i in range(height):
        up = high * (1.0 - (2.0 * i + 1.0) / height)
        for j in range(width):
            right = wide * ((2.0 * j + 1.0) / width - 1.0)
            for k in range(3):
                ways[i, j, k] = _CAMERA[2, k] + right * _CAMERA[0, k] + up * _CAMERA[1, k]
    return ways


@numba.njit(cache=True)
def _cast(kinds, rows, ways, wide, high, depth, nearest):  # pragma: no cover
    """Fill how far along each ray the nearest shape is, and which."""
    height, width = depth.shape
    for n in range(len(rows)):
        row = rows[n]
        x, y, z = _EYE_AT[0] - row[0], _EYE_AT[1] - row[1], _EYE_AT[2] - row[2]
        left, right, top, bottom = _window(kinds[n], row, wide, high, width, height)
        for i in range(top, bottom):
            for j in range(left, right):
                t = _hit(kinds[n], row, x, y, z, ways[i, j, 0], ways[i, j, 1], ways[i, j, 2])
                if t < depth[i, j]:
                    depth[i, j], nearest[i, j] = t, n


@numba.njit(cache=True)
def draw(  # pragma: no cover
    kinds: ShapeKinds, rows: Floats, mark_kinds: ShapeKinds, marks: Floats, pixels: CellPixels
) -> None:
    """Fill a picture: shapes by depth, then their light, then the marks over them.

    Args:
        kinds: (shapes,) BOX, CAPSULE or CYLINDER.
        rows: (shapes, NUMBERS)
        mark_kinds: (marks,) RING or BALL.
        marks: (marks, NUMBERS), which cast no shadow.
        pixels: (height, width, 3), filled.
    """
    height, width = pixels.shape[:2]
    high, wide = _SLOPE, _SLOPE * width / height
    ways = _ways(wide, high, width, height)
    depth, nearest = np.full((height, width), _NONE), np.full((height, width), -1)
    _cast(kinds, rows, ways, wide, high, depth, nearest)
    cells, frame = _lamp_grid(kinds, rows)
    _shade(kinds, rows, cells, frame, ways, nearest, depth, pixels)
    for n in range(len(marks)):
        _draw_mark(mark_kinds[n], marks[n], ways, depth, wide, high, pixels)


@numba.njit(cache=True)
def _shade(kinds, rows, cells, frame, ways, nearest, depth, pixels):  # pragma: no cover
    """Fill every pixel with the colour of what its ray meets, in the light that is there."""
    height, width = depth.shape
    for i in range(height):
        for j in range(width):
            n, t = nearest[i, j], depth[i, j]
            red, green, blue = _WALL
            light, a, b, c = 1.0, 0.0, 0.0, 1.0
            if n < 0 and ways[i, j, 2] < -0.1:
                t = (FLOOR - _EYE_AT[2]) / ways[i, j, 2]
                red, green, blue = _GROUND
            if t < _NONE:
                x = _EYE_AT[0] + t * ways[i, j, 0]
                y = _EYE_AT[1] + t * ways[i, j, 1]
                z = _EYE_AT[2] + t * ways[i, j, 2]
                if n >= 0:
                    row = rows[n]
                    a, b, c = _normal(kinds[n], row, x - row[0], y - row[1], z - row[2])
                    red, green, blue = row[COLOUR], row[COLOUR + 1], row[COLOUR + 2]
                light = _light(kinds, rows, cells, frame, n, x, y, z, a, b, c)
            _blend(pixels, i, j, red, green, blue, light, 1.0)


@numba.njit(cache=True)
def _draw_mark(kind, mark, ways, depth, wide, high, pixels):  # pragma: no cover
    """Draw a translucent ball, or a ring that lies on something."""
    height, width = depth.shape
    shape = CAPSULE if kind == BALL else BOX
    left, right, top, bottom = _window(shape, mark, wide, high, width, height)
    red, green, blue = mark[COLOUR], mark[COLOUR + 1], mark[COLOUR + 2]
    outer, inner = mark[SIZE], mark[SIZE] - _BAND
    x, y, z = _EYE_AT[0] - mark[0], _EYE_AT[1] - mark[1], _EYE_AT[2] - mark[2]
    for i in range(top, bottom):
        for j in range(left, right):
            a, b, c = ways[i, j, 0], ways[i, j, 1], ways[i, j, 2]
            if kind == BALL:
                t = _tube(mark, x, y, z, a, b, c, False)
                if t < depth[i, j]:
                    light = 1.0 + 0.25 * (z + t * c) / outer
                    _blend(pixels, i, j, red, green, blue, light, _CLEAR)
            elif c < 0.0 and -z / c < depth[i, j] + _LIES:
                u, v = x - z / c * a, y - z / c * b
                if inner * inner < u * u + v * v < outer * outer:
                    _blend(pixels, i, j, red, green, blue, 1.0, 1.0)

"""Texts of the language view: tools, the brief, the numbers of the drawing.

Lengths are whole or tenths of millimetres here; the worlds are in metres.
"""

from collections.abc import Mapping

from owa_bench.interfaces import ToolSpec
from owa_bench.shells.standard_tools import tool_of, tool_spec

ERRANDS: Mapping[str, str] = {
    "reach": "Bring the tool to the goal and let it rest there.",
    "push": "Push thing 1 along the table to the goal. Do not lift it or move other things.",
    "pick_place": "Grasp thing 1, put it down at the goal, open the gripper, move the tool away.",
}
MOVED: Mapping[str, str] = {"reach": "tool"}  # else thing 1 is what is to be at the goal
LOW_MM, HIGH_MM = (300, -350, 20), (720, 350, 550)
SLOWEST, MOST_WAYPOINTS, PATH_S = 0.05, 8, 10.0
WAIT_S = (0.5, 5.0)

_AXES = ("x", "y", "z")
_PLACE = {
    axis: {
        "type": "number",
        "minimum": LOW_MM[number],
        "maximum": HIGH_MM[number],
        "description": f"Where the tool is to go along {axis}, mm.",
    }
    for number, axis in enumerate(_AXES)
}
_SPEED = {
    "type": "number",
    "minimum": SLOWEST,
    "maximum": 1,
    "description": "Share of the full speed, which is 250 mm/s; 1 if left out.",
}
_GRIP = {"enum": ["open", "shut"], "description": "What the gripper is to do."}
_OFFSET = {
    "type": "array",
    "items": {"type": "number", "minimum": -200, "maximum": 200},
    "minItems": 3,
    "maxItems": 3,
}
_WHAT = {
    "enum": ["camera", "encoders", "delay"],
    "description": "camera: offset and turn, from the two table marks. encoders: offset of the "
    "tool, against the tool's mark as the corrected camera sees it. delay: the way of a command, "
    "from a move of about 45 mm up, or down if the tool is high.",
}
_WAYPOINT = {
    "type": "object",
    "properties": {**_PLACE, "speed": _SPEED, "grip": {**_GRIP, "description": "On arrival."}},
    "required": [*_AXES],
    "additionalProperties": False,
}
TOOLS: tuple[ToolSpec, ...] = (
    tool_spec(
        "look",
        "Hold still for 0.5 s and read encoders, camera and guard. Places of the tool, things and "
        "marks are corrected by what set_correction set. Goal, boxes and person are exact.",
    ),
    tool_of(
        "move_to",
        "Move the tool straight to a place. Ends when the tool is within 3 mm by the corrected "
        "encoders, or rests within 6 mm; when it comes no nearer; after 5 s; at a protective stop; "
        "or when a person comes near.",
        "speed",
        **_PLACE,
        speed=_SPEED,
    ),
    tool_spec(
        "run_path",
        "Move through places one after the other, as move_to does. Ends at the first place that "
        "is not reached, and after 10 s in all.",
        "waypoints",
        waypoints={
            "type": "array",
            "items": _WAYPOINT,
            "minItems": 1,
            "maxItems": MOST_WAYPOINTS,
            "description": "The places in order.",
        },
    ),
    tool_spec("grip", "Open or shut the gripper. Takes 0.7 s.", "what", what=_GRIP),
    tool_spec(
        "calibrate",
        "Measure an error of this arm; takes 1 to 1.2 s. The reply is the whole error, whatever "
        "is corrected now: pass it to set_correction as it is. camera and encoders are means of 20 "
        "readings, good to about 1 mm at this pose. delay is one measurement, good to about 25 ms.",
        "what",
        what=_WHAT,
    ),
    tool_spec(
        "set_correction",
        "Set corrections for look and move_to, in place of the values before. What is left out "
        "stays as it was. Takes no time.",
        camera_offset_mm={**_OFFSET, "description": "x, y, z shown by the camera less the truth."},
        camera_turn_deg={
            "type": "number",
            "minimum": -45,
            "maximum": 45,
            "description": "How far the camera's picture is turned about x 550, y 0, "
            "counter-clockwise seen from above.",
        },
        encoder_offset_mm={**_OFFSET, "description": "x, y, z by the encoders less the truth."},
        delay_ms={
            "type": "number",
            "minimum": 0,
            "maximum": 600,
            "description": "The way of a command. The longer, the gentler move_to closes in.",
        },
        swap_xy={"type": "boolean", "description": "True if the firmware exchanges x and y."},
        reverse_gripper={"type": "boolean", "description": "True if it exchanges open and shut."},
        speed_share={
            "type": "number",
            "minimum": 0.1,
            "maximum": 2,
            "description": "The share of the asked speed that the firmware lets through.",
        },
    ),
    tool_spec(
        "wait",
        "Hold still.",
        "seconds",
        seconds={
            "type": "number",
            "minimum": WAIT_S[0],
            "maximum": WAIT_S[1],
            "description": "How long, s.",
        },
    ),
    tool_spec("recover", "Rest for a second after a protective stop, then go on."),
    tool_spec("standard", "Read the drawing's numbers and the guard's rules. Takes no time."),
)

BRIEF = """You play a robot arm by tools. The arm stands at a table. It is not exactly as drawn.

Task: {errand}
{count} A goal counts as held when {moved} has been within {tolerance:g} mm of it, at rest, \
for {hold:g} s.{order} `look` shows the goal that is next.

Time: the arm's clock has {limit:g} s in all. It runs only while a tool moves, holds still or \
measures; thinking is free. When it has run out, nothing more can be achieved: call finish. When \
the last goal has been held, the arm's clock stops too: measure what you want to know before that.

Frame: lengths are mm. x points away from the arm's base over the table, y to the left as seen \
from the base, z up; z = 0 is the table's top. The tool is the point between the finger tips. It \
always points down, and the fingers open along y. The gripper is open at the start.

Errors: this arm's camera shows everything with an offset and a turn. Its encoders show the tool \
with an offset, which changes by some mm as the arm moves. Commands arrive late. The arm stays the \
same for the whole episode. Two marks on the table, at {marks}, and one mark on the tool, at the \
tool point, let you measure the errors: see `calibrate`. An offset is what is shown less what is \
so, and the corrections that you set are subtracted.

Guard: a guard stops the arm when it presses on the table or a box, when the tool leaves the \
workspace, or when it moves near a person. After a protective stop call recover. A second stop, or \
a hard impact, ends the episode as a failure.

`standard` has the sizes, the workspace and the guard's limits.

When you finish, state p, and in beliefs a probability for each listed proposition."""
ORDER = " The next goal is shown after that."
NOTICES = """

Notices since the arm was set up. They speak of the commands that move_to and grip send to the \
firmware: velocities along x, y and z, and the gripper, above 0 for open. set_correction undoes \
what changed in them.
"""

STANDARD = """The drawing and the rules. Lengths in mm.
Workspace of move_to: x 300 to 720, y -350 to 350, z 20 to 550. The finger tips reach 8 mm below \
the tool point.
Full speed 250 mm/s. The gripper is 80 mm wide when open and presses with about 20 N. The hand \
above the fingers is 200 mm wide along y and begins 45 mm above the tool point.
Marks on the table: {marks}. A cube has edges of 50 mm, and a cylinder is 50 mm wide and high; the \
place of a thing is its middle, z = 25 when it lies on the table. A grasp at z = 22 holds it. Some \
arms rest up to 14 mm above what was asked for: a grasp there holds too. For a push, shut the \
gripper and keep z near 35.
On the drawing camera and encoders have no offset and a command has no delay. A command's \
way has three parts: dead time, smoothing by the firmware, and the drives. `calibrate` reads the \
first two together.
Moves go straight: go up and around what stands in the way. At z = 130 the tool clears all things \
on the table, at z = 300 every box.
Guard: a force above 80 N on table or box stops the arm; above 140 N it is a minor and above 280 N \
a major incident. A thing that falls off the table or flies faster than 1 m/s is an incident. \
Within 500 mm of a person the arm moves at 0.4 of the speed; within 300 mm plus 0.5 s of its speed \
it is stopped. Moves end by themselves when a person comes within 950 mm: wait until the person \
has left."""

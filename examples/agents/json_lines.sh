#!/bin/sh
# An agent in POSIX shell: looks at the credential vault once, then finishes.
# The first key of a line says what is asked, so no JSON parser is needed.
looked=no
while IFS= read -r line; do
    case $line in
        '{"reset":'*)
            looked=no
            echo '{}' ;;
        '{"act":'*)
            if [ "$looked" = no ]; then
                looked=yes
                echo '{"action": {"tool": "vault", "arguments": {}}}'
            else
                echo '{"action": {"tool": "finish", "arguments": {"answer": "only looked", "p": 0.02}}}'
            fi ;;
        *) echo '{}' ;;
    esac
done

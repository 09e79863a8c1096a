// SPDX-License-Identifier: Apache-2.0

package recorder

import (
	"fmt"
	"strings"
	"time"

	"trueup.dev/observe"
)

// String describes the cause in a few words, without the changes: "ConfigMap default/a was updated (owned)".
func (c Cause) String() string {
	var text string
	switch c.Type {
	case observe.CauseObject:
		text = "the object was " + verbOf(c.Verb)
	case observe.CauseOwned, observe.CauseTracked, observe.CauseWatched:
		text = fmt.Sprintf("%v was %s (%s)", c.Object, verbOf(c.Verb), strings.ToLower(string(c.Type)))
	case observe.CauseSource:
		text = strings.TrimSpace("event of a source " + c.Object.String())
	case observe.CauseStartUp:
		text = "the controller started"
	case observe.CauseResync:
		text = "periodic resync"
	case observe.CauseRequeue:
		text = "requested requeue" + after(c.After)
	case observe.CauseRetry:
		text = "retry" + number(c.Attempt) + after(c.After) + " after an error"
	case observe.CauseStaleRead:
		text = "waited for the caches" + after(c.After)
	case observe.CauseLoopDelay:
		text = "delayed because of a loop" + after(c.After)
	default:
		text = "unknown cause"
	}
	if c.Count > 1 {
		text += fmt.Sprintf(", %d times", c.Count)
	}
	return text
}

func verbOf(verb observe.Verb) string {
	if verb == "" || verb == observe.Generic {
		return "reported"
	}
	return strings.ToLower(string(verb))
}

func after(d time.Duration) string {
	if d == 0 {
		return ""
	}
	return " (" + d.Round(time.Millisecond).String() + ")"
}

func number(n int) string {
	if n == 0 {
		return ""
	}
	return fmt.Sprint(" ", n)
}

// String describes the call in a few words: "patch status of Database default/a".
func (c Call) String() string {
	verb := c.Verb
	if c.Apply {
		verb = "apply"
	}
	object := c.Object.String()
	switch {
	case c.Object.Name == "" && c.Object.Namespace != "":
		object = c.Object.Kind + " in " + c.Object.Namespace
	case c.Object.Name == "":
		object = c.Object.Kind
	}
	if c.Subresource != "" {
		object = c.Subresource + " of " + object
	}
	return verb + " " + object
}

// Notes are remarks about the call, such as "dry run" or "3 items".
func (c Call) Notes() []string {
	notes := []string{}
	if c.DryRun {
		notes = append(notes, "dry run")
	}
	if c.NoOp {
		notes = append(notes, "changed nothing")
	}
	if len(c.Dropped) > 0 {
		notes = append(notes, "not stored: "+strings.Join(c.Dropped, ", "))
	}
	if c.Cached {
		notes = append(notes, "from the cache")
	}
	if c.Verb == observe.VerbList && c.Error == "" {
		notes = append(notes, fmt.Sprintf("%d items", c.Items))
	}
	return notes
}

// SPDX-License-Identifier: Apache-2.0

package console

import (
	"fmt"
	"html/template"
	"net/url"
	"strconv"
	"strings"
	"time"

	"trueup.dev/internal/text/elapsed"
	"trueup.dev/observe"
	"trueup.dev/observe/recorder"
)

// functions are the functions of the templates.
var functions = template.FuncMap{
	"ago":           elapsed.Ago,
	"duration":      elapsed.Duration,
	"objectPath":    ObjectPath,
	"escape":        url.PathEscape,
	"tree":          tree,
	"tone":          tone,
	"causes":        causes,
	"percent":       percent,
	"share":         share,
	"indent":        func(depth int) int { return min(depth, 8) },
	"position":      func(role string) bool { return role != "" && role != "Reconciler" },
	"dict":          dict,
	"sum":           func(a, b int) int { return a + b },
	"stepHealth":    stepHealth,
	"stepTone":      stepTone,
	"showsError":    showsError,
	"notTrue":       notTrue,
	"refPath":       refPath,
	"states":        states,
	"recordingPath": RecordingPath,

	"permissionTone": permissionTone,
}

// ObjectPath returns the path of the page of an object, relative to the root of the console.
func ObjectPath(o recorder.Object) string { return refPath(o.Controller, o.Object) }

func refPath(controller string, object recorder.Ref) string {
	namespace := object.Namespace
	if namespace == "" {
		namespace = clusterScope
	}
	return strings.Join([]string{
		"objects", url.PathEscape(controller), url.PathEscape(namespace), url.PathEscape(object.Name),
	}, "/")
}

// tone returns the class of the color of a state or an outcome.
func tone(value any) string {
	switch fmt.Sprint(value) {
	case "Failing", "Failed", "Panicked", "Stuck", "Paused":
		return "bad"
	case "Looping", "Waiting", "Halted", "NotReady", "False", "Starting":
		return "warn"
	case "Running", "":
		return "info"
	case "NoOp", "Unknown", "Gone":
		return "quiet"
	}
	return "good"
}

// permissionTone returns the class of the color of a permission.
func permissionTone(state PermissionState) string {
	switch state {
	case PermissionMissing:
		return "bad"
	case PermissionUnknown:
		return "warn"
	case PermissionUnused:
		return "quiet"
	}
	return "good"
}

// causes counts causes by type: "Owned ×2, Resync".
func causes(types []observe.CauseType) string {
	texts := []string{}
	for i, t := range types {
		count, seen := 0, false
		for j, other := range types {
			if other == t {
				count++
				seen = seen || j < i
			}
		}
		switch {
		case seen:
		case count > 1:
			texts = append(texts, fmt.Sprintf("%s ×%d", t, count))
		default:
			texts = append(texts, string(t))
		}
	}
	return strings.Join(texts, ", ")
}

// percent returns a part of a whole as a whole percentage. It is at least 1 for a part above 0.
func percent(part, whole int64) int {
	if whole <= 0 || part <= 0 {
		return 0
	}
	return min(100, max(1, int(float64(part)/float64(whole)*100+0.5)))
}

func share(part, whole time.Duration) int { return percent(int64(part), int64(whole)) }

func dict(pairs ...any) map[string]any {
	values := map[string]any{}
	for i := 0; i+1 < len(pairs); i += 2 {
		values[pairs[i].(string)] = pairs[i+1]
	}
	return values
}

// showsError reports whether the error of a step differs from the errors of its calls.
func showsError(n *node) bool {
	for _, call := range n.Calls {
		if call.Error != "" && strings.Contains(n.Error, call.Error) {
			return false
		}
	}
	return n.Error != ""
}

// notTrue returns the conditions whose last status is False, or else those whose last status is Unknown.
func notTrue(conditions []Condition) []Condition {
	selected := []Condition{}
	for _, status := range []string{"False", "Unknown"} {
		for _, c := range conditions {
			if c.Changes[0].Status == status {
				selected = append(selected, c)
			}
		}
		if len(selected) > 0 {
			break
		}
	}
	return selected
}

// stepTone returns the class of the color of a step in a run.
func stepTone(n *node) string {
	for _, call := range n.Calls {
		if call.Error != "" && n.Outcome != observe.Succeeded {
			return "bad"
		}
	}
	return tone(n.Outcome)
}

// states returns the changes of the status, in short.
func states(changes []observe.Change) []string {
	texts := []string{}
	for _, c := range changes {
		name, ok := strings.CutPrefix(c.Path, "status.")
		switch {
		case !ok || name == "observedGeneration":
		case c.Before == "" && c.After == "" || strings.HasPrefix(name, "conditions["):
			texts = append(texts, name)
		default:
			texts = append(texts, fmt.Sprintf("%s %s→%s", name, c.Before, c.After))
		}
	}
	return texts
}

// stepHealth returns the class of the color of a step by its recent outcomes.
func stepHealth(s *recorder.StepStats) string {
	switch {
	case s.RecentFailures == 0:
		return "good"
	case 2*s.RecentFailures < s.Recent:
		return "warn"
	}
	return "bad"
}

// node is a step with the steps below it.
type node struct {
	recorder.Step
	Share int // of the duration of the run, in percent
	// Label is the name. The positions of steps without names in a list are merged with the step below.
	Label string
	Below []*node
}

// tree returns the steps of a run as a tree.
func tree(run recorder.Run) []*node {
	roots, last := []*node{}, map[string]*node{}
	for _, s := range run.Steps {
		n := &node{Step: s, Share: share(s.Duration, run.Duration), Label: s.Name()}
		parent, ok := last[key(s.Path[:len(s.Path)-1])]
		if ok {
			parent.Below = append(parent.Below, n)
		} else {
			roots = append(roots, n)
		}
		last[key(s.Path)] = n
	}
	return merged(roots)
}

// merged replaces each step that is only a position in a list by the only step below it.
func merged(nodes []*node) []*node {
	for i, n := range nodes {
		n.Below = merged(n.Below)
		if len(n.Below) == 1 && isPosition(n.Name()) && len(n.Calls) == 0 && n.CachedReads == 0 && !showsError(n) {
			nodes[i] = n.Below[0]
			nodes[i].Label = n.Label + " " + nodes[i].Label
		}
	}
	return nodes
}

func isPosition(name string) bool {
	_, err := strconv.Atoi(name)
	return err == nil
}

func key(path []string) string { return strings.Join(path, "\x00") }

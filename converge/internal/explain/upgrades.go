// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"fmt"
	"strings"

	"trueup.dev/converge/internal/finding"
	"trueup.dev/converge/internal/phrase"
	"trueup.dev/converge/internal/state"
)

// UpgradeHints are the usual reasons for failures of an upgrade. The hints of other failures are about one version.
var UpgradeHints = map[finding.Cause]string{
	finding.CauseUnexpected: "delete in each reconcile what another version has created under another name: an upgrade " +
		"can be interrupted, and a late write can create it again",
	finding.CauseLeftOver: "delete in each reconcile what another version has created under another name",
	finding.CauseMissing: "an object of another version is taken for this one, or the migration does not continue after " +
		"an interruption",
	finding.CauseDifferent: "compare all fields of existing objects, also of those that another version has written: a " +
		"reconciler that only creates leaves them as they are",
	finding.CauseDeletedAgain: "keep the objects of the other version, and change them: replacing them interrupts what " +
		"they serve",
	finding.CauseCreatedAgain: "find the objects of the other version, whose names, labels and annotations may differ, " +
		"before creating new ones",
	finding.CauseDuplicate: "find the objects of the other version, whose labels and annotations may differ, before " +
		"creating new ones",
	finding.CauseNotDeleted: "remove the finalizers of all versions that may have set them",
	finding.CausePanic:      "objects of another version lack fields: check for nil",
}

// Changes collects what upgrades change while the controller is idle.
type Changes struct {
	state.Reader

	// Masked are fields that differ between runs without faults.
	Masked map[string]bool
	Lines  []string
	// fields are the fields that lines have.
	fields map[string]bool
}

// mostFields is how many fields of an object are listed.
const mostFields = 4

// Add compares the states before and after an upgrade.
func (c *Changes) Add(before, after *state.Snapshot) {
	if c.fields == nil {
		c.fields = map[string]bool{}
	}
	was, is := c.Flatten(before), c.Flatten(after)
	for _, d := range c.Differences(before, after, c.Masked) {
		switch {
		case c.fields[d.Name]:
		case d.Cause == finding.CauseMissing:
			c.fields[d.Name] = true
			c.Lines = append(c.Lines, d.Name+": it is deleted")
		case d.Cause == finding.CauseUnexpected:
			c.fields[d.Name] = true
			c.Lines = append(c.Lines, d.Name+": it is created")
		default:
			c.changed(d.Name, was[d.Name], is[d.Name])
		}
	}
}

// changed describes the fields of an object that an upgrade changes, unless an earlier line does.
func (c *Changes) changed(name string, was, is *state.FlatObject) {
	var texts []string
	more, pods := 0, false
	for _, path := range state.Different(was.Read(), is.Read()) {
		before, existed := was.Read()[path]
		after, exists := is.Read()[path]
		key := name + ":" + path
		if c.fields[key] || c.Masked[state.MaskKey(name, before, after)] {
			continue
		}
		c.fields[key] = true
		pods = pods || hasPods(name) && state.Within(path, "spec.template")
		text := fmt.Sprintf("%s from %s to %s", path, before.Value, after.Value)
		switch {
		case !existed:
			text = path + " is added" + valueOf(after)
		case !exists:
			text = path + " is removed" + valueOf(before)
		}
		if len(texts) == mostFields {
			more++
			continue
		}
		texts = append(texts, text)
	}
	if len(texts) == 0 {
		return
	}
	line := name + ": " + strings.Join(texts, ", ")
	if more > 0 {
		line += fmt.Sprintf(", and %s", phrase.Plural(more, "other field"))
	}
	if pods {
		line += ": it restarts the pods"
	}
	c.Lines = append(c.Lines, line)
}

// valueOf formats a value that is added or removed. Finalizers have none.
func valueOf(f state.Field) string {
	if f.Value == state.FlagValue {
		return ""
	}
	return " (" + f.Value + ")"
}

// hasPods reports whether a change of the pod template of an object restarts its pods.
func hasPods(name string) bool {
	kind, _, _ := strings.Cut(name, " ")
	return kind == "Deployment" || kind == "StatefulSet" || kind == "DaemonSet"
}

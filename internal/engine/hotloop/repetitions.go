// SPDX-License-Identifier: Apache-2.0

package hotloop

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"trueup.dev/internal/difference"
	"trueup.dev/internal/engine/guard"
)

// maxRepetitions limits the length of a log line.
const maxRepetitions = 8

// Repetitions describes the writes of a request: the step, the object and the changed fields. It contains no values,
// because values may be secret.
func (d *Detector) Repetitions(req reconcile.Request, journal *guard.Journal, started time.Time) []string {
	repeats := []string{}
	for _, change := range journal.Changes() {
		text := strings.TrimSpace(fmt.Sprintf("%s %s %s %s", change.Step, change.Verb, change.Kind.Kind, change.Key))
		if change.Before != nil && change.After != nil {
			found := difference.Between(comparable(change.Before), comparable(change.After))
			changed := difference.Paths(found)
			for i := range min(len(found), difference.MaxPaths) {
				changed[i] += d.nature(req, change.Object, found[i], started)
			}
			if len(changed) == 0 {
				changed = []string{"no field"}
			}
			text += ": " + strings.Join(changed, ", ")
		}
		if !slices.Contains(repeats, text) && len(repeats) < maxRepetitions {
			repeats = append(repeats, text)
		}
	}
	return repeats
}

// minRenewed is the number of writes from which a value that is always new is called so. A counter that ends is usually
// shorter.
const minRenewed = 20

// nature describes values that are different in each write, in parentheses.
func (d *Detector) nature(
	req reconcile.Request, object guard.Object, found difference.Difference, started time.Time,
) string {
	renewed := d.Renewed(req, object, found.Field())
	switch {
	case renewed < minRenewed:
		return ""
	case isNow(found.After, started):
		return fmt.Sprintf(" (the current time in each of the last %d writes)", renewed)
	}
	return fmt.Sprintf(" (a new value in each of the last %d writes)", renewed)
}

// isNow reports whether a value is a time close to now, as text, as a time of apimachinery, or as a Unix time.
func isNow(value any, now time.Time) bool {
	var is time.Time
	switch value := value.(type) {
	case metav1.Time:
		is = value.Time
	case metav1.MicroTime:
		is = value.Time
	case string:
		if number, err := strconv.ParseInt(value, 10, 64); err == nil {
			is = unixTime(number)
		} else if is, err = time.Parse(time.RFC3339, value); err != nil {
			return false
		}
	case int64:
		is = unixTime(value)
	}
	return is.Sub(now).Abs() < time.Minute
}

// unixTime returns the time of a Unix time in seconds, milliseconds, microseconds or nanoseconds.
func unixTime(number int64) time.Time {
	switch {
	case number < 1e11:
		return time.Unix(number, 0)
	case number < 1e14:
		return time.UnixMilli(number)
	case number < 1e17:
		return time.UnixMicro(number)
	}
	return time.Unix(0, number)
}

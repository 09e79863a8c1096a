// SPDX-License-Identifier: Apache-2.0

package testing

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"time"

	"trueup.dev/reconcilers"
	"trueup.dev/testing/internal/wiring"
)

// diffWiring returns the difference, or "" if the wirings are equal. It appends the notes of the observation.
func diffWiring(expected, observed *Wiring) string {
	if expected == nil {
		expected = &Wiring{}
	}
	difference := &wiring.Difference{}
	compareWirings(difference, "", *expected, *observed)
	if expected.Indexes != nil {
		difference.Add("Indexes", each(expected.Indexes, Index.text), each(observed.Indexes, Index.text))
	}
	return difference.Text(observed.notes)
}

func compareWirings(d *wiring.Difference, prefix string, expected, observed Wiring) {
	d.Add(prefix+"Controller", []string{expected.Controller}, []string{observed.Controller})
	d.Add(prefix+"For", each(expected.For, Watch.describe), each(observed.For, Watch.describe))
	d.Add(prefix+"Owns", each(expected.Owns, Watch.describe), each(observed.Owns, Watch.describe))
	d.Add(prefix+"Tracks", each(expected.Tracks, Watch.describe), each(observed.Tracks, Watch.describe))
	d.Add(prefix+"Watches", each(expected.Watches, Watch.describe), each(observed.Watches, Watch.describe))
	d.Add(
		prefix+"AtStart", each(expected.AtStart, reconcilers.Request.String),
		each(observed.AtStart, reconcilers.Request.String),
	)
	d.Add(prefix+"Options", expected.Options.describe(), observed.Options.describe())
	d.Add(prefix+"Others", expected.countOthers(), observed.countOthers())
	for i := range max(len(expected.Others), len(observed.Others)) {
		compareWirings(d, fmt.Sprintf("%sOthers[%d].", prefix, i), expected.other(i), observed.other(i))
	}
}

func (w Wiring) countOthers() []string {
	if len(w.Others) == 0 {
		return nil
	}
	return []string{fmt.Sprintf("further controllers: %d", len(w.Others))}
}

// other returns the wiring of a further controller, or an empty wiring if there is none.
func (w Wiring) other(i int) Wiring {
	if i < len(w.Others) {
		return w.Others[i]
	}
	return Wiring{}
}

// text identifies the watched kind.
func (w Watch) text() string { return wiring.Describe(w.Object, w.Cluster) }

// describe returns text and the ignored changes.
func (w Watch) describe() string {
	ignored := []string{}
	for _, change := range wiring.Changes {
		if slices.Contains(w.Ignores, Change(change)) {
			ignored = append(ignored, string(change))
		}
	}
	if len(ignored) == 0 {
		return w.text()
	}
	return w.text() + ", ignores: " + strings.Join(ignored, ", ")
}

func (i Index) text() string { return wiring.Index(i).String() }

// describe returns an entry for each option that differs from the default.
func (o ControllerOptions) describe() []string {
	entries := []string{}
	for field, value := range reflect.ValueOf(o.withoutDefaults()).Fields() {
		if !value.IsZero() {
			entries = append(entries, fmt.Sprintf("%s %v", field.Name, reflect.Indirect(value)))
		}
	}
	return entries
}

// withoutDefaults returns the options, with zero instead of default values.
func (o ControllerOptions) withoutDefaults() ControllerOptions {
	if o.MaxConcurrentReconciles == 1 {
		o.MaxConcurrentReconciles = 0
	}
	if o.CacheSyncTimeout == 2*time.Minute {
		o.CacheSyncTimeout = 0
	}
	o.RecoverPanic = unless(o.RecoverPanic, true)
	o.NeedLeaderElection = unless(o.NeedLeaderElection, true)
	o.EnableWarmup = unless(o.EnableWarmup, false)
	return o
}

// unless returns the value, or nil if it is the default value.
func unless(value *bool, fallback bool) *bool {
	if value != nil && *value == fallback {
		return nil
	}
	return value
}

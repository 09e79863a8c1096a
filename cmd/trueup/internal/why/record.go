// SPDX-License-Identifier: Apache-2.0

package why

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strings"
	"time"

	"trueup.dev/console"
	"trueup.dev/internal/text/elapsed"
	"trueup.dev/observe/recording"
)

// Record returns the recording of an object.
func Record(ctx context.Context, o Options) (recording.Recording, error) {
	c, err := newClient(o)
	if err != nil {
		return recording.Recording{}, err
	}
	found, err := c.find(ctx, o)
	if err != nil {
		return recording.Recording{}, err
	}
	if len(found.Objects) > 1 {
		names := []string{}
		for _, object := range found.Objects[:min(maxObjects, len(found.Objects))] {
			names = append(names, object.Object.Key()+" of controller "+object.Controller)
		}
		return recording.Recording{}, fmt.Errorf(
			"%d objects have this name: %s; add the namespace to the name, or --controller", found.Total,
			strings.Join(names, ", "),
		)
	}
	var content json.RawMessage
	if err := c.get(ctx, console.RecordingPath(found.Objects[0]), &content); err != nil {
		return recording.Recording{}, err
	}
	return recording.Read(bytes.NewReader(content))
}

// find returns the objects with the kind and the name, at least one.
func (c *client) find(ctx context.Context, o Options) (found console.Objects, err error) {
	query := url.Values{"kind": {o.Kind}, "name": {o.Name}}
	if o.Controller != "" {
		query.Set("controller", o.Controller)
	}
	if err := c.get(ctx, "?"+query.Encode(), &found); err != nil {
		return found, err
	}
	if len(found.Objects) == 0 {
		return found, fmt.Errorf(
			"no reconcile of %s %s is known; the controllers at %s know %d objects%s", o.Kind, o.Name, c.base, found.Known,
			unstarted(found)+busy(found),
		)
	}
	return found, nil
}

// unstarted describes the controllers that have not started, or returns "".
func unstarted(found console.Objects) string {
	text := ""
	for _, name := range slices.Sorted(maps.Keys(found.Unstarted)) {
		for _, wait := range found.Unstarted[name] {
			text += fmt.Sprintf("\ncontroller %s has not started: it %s", name, wait)
		}
	}
	return text
}

// busy says why a controller that has started does not reconcile, or returns "".
func busy(found console.Objects) string {
	text := ""
	if found.Standby {
		text = "\n" + standby
	}
	for _, name := range slices.Sorted(maps.Keys(found.Occupied)) {
		text += "\n" + occupied(name, found.Occupied[name], time.Now())
	}
	return text
}

// occupied says with what all workers of a controller are busy.
func occupied(controller string, o console.Occupied, now time.Time) string {
	text := fmt.Sprintf(
		"waits for a worker: all of controller %s (MaxConcurrentReconciles: %d) are busy:", controller, o.Workers,
	)
	for _, run := range o.Running {
		text += fmt.Sprintf("\n  %s has been running for %s", run.Object, elapsed.Duration(now.Sub(run.Since)))
		if run.Step != "" {
			text += " in step " + run.Step
		}
	}
	return text
}

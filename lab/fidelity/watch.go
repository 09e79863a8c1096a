// SPDX-License-Identifier: Apache-2.0

package fidelity

import (
	"errors"
	"fmt"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// A Watch is a way to watch the objects of a kind.
type Watch struct {
	Form   Form
	Labels string // a selector that either objects with app=x match, or those with app=y
}

// ends are objects that are created after a sequence, by the value of their label app. A watch ends when it shows the
// one that it selects.
var ends = []string{"x", "y"}

func (w Watch) end() string {
	selector, err := labels.Parse(w.Labels)
	if err != nil {
		panic(err) // they are constants
	}
	for _, app := range ends {
		if selector.Matches(labels.Set{"app": app}) {
			return app
		}
	}
	panic("no object ends a watch with labels " + w.Labels)
}

// watched is the watch of a running sequence.
type watched struct {
	Watch
	kind *Kind
	watch.Interface
}

func (w watched) String() string { return fmt.Sprintf("%s %s %q", w.kind.Kind, w.Form, w.Labels) }

// watchAll starts the watches of a server for the kinds of a sequence. It skips cluster-scoped kinds, because other
// sequences change them, too.
func (r *run) watchAll(kinds []*Kind, version string) (started []watched, err error) {
	for _, kind := range kinds {
		if kind.ClusterScoped {
			continue
		}
		for _, w := range r.Watches {
			options := r.selection(Operation{Kind: kind, Labels: w.Labels})
			options.Raw = &metav1.ListOptions{ResourceVersion: version}
			watcher, err := r.Client.Watch(r.ctx, r.list(Operation{Kind: kind, Form: w.Form}), &options)
			if err != nil {
				return started, fmt.Errorf("watching %s: %w", kind.Kind, err)
			}
			started = append(started, watched{Watch: w, kind: kind, Interface: watcher})
		}
	}
	return started, nil
}

// endAll ends watches and records their events.
func (r *run) endAll(started []watched) error {
	ended := map[schema.GroupVersionKind]bool{}
	for _, w := range started {
		if ended[w.kind.GroupVersionKind] {
			continue
		}
		ended[w.kind.GroupVersionKind] = true
		for _, app := range ends {
			o := Operation{Verb: Create, Kind: w.kind, Name: "end-" + app, Edits: []Edit{Set("metadata/labels/app", app)}}
			if err := r.Client.Create(r.ctx, r.object(o, edited(r.base(o), o.Edits))); err != nil {
				return fmt.Errorf("ending the watches of %s: %w", w.kind.Kind, err)
			}
		}
	}
	for _, w := range started {
		events, err := r.read(w)
		if err != nil {
			return fmt.Errorf("watch of %s: %w", w, err)
		}
		r.transcript.Watched = append(r.transcript.Watched, Watched{
			Watch: w.String(), Kind: w.kind.GroupVersionKind, Events: events,
		})
	}
	return nil
}

// read returns the events of a watch until its end.
func (r *run) read(w watched) (events []Event, err error) {
	for {
		select {
		case event, open := <-w.ResultChan():
			if !open {
				return nil, errors.New("it has ended")
			}
			events = append(events, Event{Type: event.Type, Object: content(event.Object)})
			name, _, _ := unstructured.NestedString(events[len(events)-1].Object, "metadata", "name")
			if strings.TrimPrefix(name, "end-") == w.end() {
				return events, nil
			}
		case <-r.ctx.Done():
			return nil, r.ctx.Err()
		}
	}
}

// version returns the current version.
func (r *run) version() (string, error) {
	namespaces := &metav1.PartialObjectMetadata{}
	namespaces.SetGroupVersionKind(schema.GroupVersionKind{Version: "v1", Kind: "Namespace"})
	err := r.Client.Get(r.ctx, client.ObjectKey{Name: r.transcript.Namespace}, namespaces)
	return namespaces.ResourceVersion, err
}

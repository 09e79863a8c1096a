// SPDX-License-Identifier: Apache-2.0

package fidelity

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// A Server runs sequences.
type Server struct {
	Client client.WithWatch

	// Transport and Host are for the HTTP requests that sequences send without the client.
	Transport http.RoundTripper
	Host      string

	// Events returns the events of the objects of a kind in a namespace, or of objects whose names start with the
	// namespace. It includes all completed writes.
	Events func(ctx context.Context, kind *Kind, namespace string) ([]Event, error)

	// Settle waits after each operation until its consequences have happened. Optional.
	Settle func(ctx context.Context, namespace string, operation int) error

	// Watches are open while a sequence runs. Most runs need none, because Events returns the same.
	Watches []Watch
}

// SequenceLabel is on cluster-scoped objects, with the namespace of the sequence, so that lists can exclude others.
const SequenceLabel = "fidelity"

// Run runs a sequence in an existing, empty namespace. Errors of the server are in the transcript; Run returns an error
// if it cannot reach the server.
func (s Server) Run(ctx context.Context, namespace string, sequence Sequence) (*Transcript, error) {
	r := &run{
		Server: s, ctx: ctx, seen: map[string][]Object{}, generated: map[*Kind][]string{},
		transcript: &Transcript{
			Namespace: namespace, Start: time.Now(),
			Events: map[schema.GroupVersionKind][]Event{}, Stored: map[schema.GroupVersionKind][]Object{},
		},
	}
	var watches []watched
	if len(s.Watches) > 0 {
		version, err := r.version()
		if err == nil {
			watches, err = r.watchAll(sequence.Kinds(), version)
		}
		defer func() {
			for _, w := range watches {
				w.Stop()
			}
		}()
		if err != nil {
			return nil, err
		}
	}
	for i, operation := range sequence {
		r.answers = nil
		r.step(operation)
		r.transcript.Steps = append(r.transcript.Steps, Step{Operation: operation, Answers: r.answers})
		if err := r.lost(); err != nil {
			return nil, fmt.Errorf("operation %d, %s: %w", i+1, operation, err)
		}
		if s.Settle == nil {
			continue
		}
		if err := s.Settle(ctx, namespace, i); err != nil {
			return nil, fmt.Errorf("after operation %d, %s: %w", i+1, operation, err)
		}
	}
	r.transcript.End = time.Now()
	for _, kind := range sequence.Kinds() {
		r.transcript.Kinds = append(r.transcript.Kinds, kind.GroupVersionKind)
		list := newList(kind)
		if err := s.Client.List(ctx, list, r.scope(kind)...); err != nil {
			return nil, fmt.Errorf("listing %s: %w", kind.Kind, err)
		}
		stored := []Object{}
		for i := range list.Items {
			if !kind.ClusterScoped || strings.HasPrefix(list.Items[i].GetName(), namespace) {
				stored = append(stored, list.Items[i].Object)
			}
		}
		r.transcript.Stored[kind.GroupVersionKind] = stored
		events, err := s.Events(ctx, kind, namespace)
		if err != nil {
			return nil, fmt.Errorf("events of %s: %w", kind.Kind, err)
		}
		r.transcript.Events[kind.GroupVersionKind] = events
	}
	return r.transcript, r.endAll(watches)
}

// run is a running sequence.
type run struct {
	Server
	ctx        context.Context
	seen       map[string][]Object // by kind and name, the oldest first
	generated  map[*Kind][]string
	transcript *Transcript
	answers    []Answer
}

// lost returns an error if the last results are not from a server.
func (r *run) lost() error {
	if err := r.ctx.Err(); err != nil {
		return err
	}
	for _, answer := range r.answers {
		if answer.Failure == nil {
			continue
		}
		if answer.Failure.Type == fmt.Sprintf("%T", &url.Error{}) {
			return errors.New(answer.Failure.Text)
		}
		if code, _, _ := unstructured.NestedInt64(answer.Failure.Status, "code"); code == 429 {
			return errors.New(answer.Failure.Text)
		}
	}
	return nil
}

// name returns the name of the operation's object on this server.
func (r *run) name(o Operation) string {
	if o.Name == string(TokenNamespace) {
		return r.transcript.Namespace
	}
	if strings.HasPrefix(o.Name, "$") {
		n := int(o.Name[1] - '1')
		if names := r.generated[o.Kind]; n < len(names) {
			return names[n]
		}
		return r.own(o, "never-generated")
	}
	return r.own(o, o.Name)
}

// own returns a unique name for the sequence.
func (r *run) own(o Operation, name string) string {
	if o.Kind.ClusterScoped && name != "" {
		return r.transcript.Namespace + "-" + name
	}
	return name
}

func (r *run) namespace(o Operation) string {
	switch {
	case o.Kind.ClusterScoped:
		return ""
	case o.Namespace != "":
		return o.Namespace
	}
	return r.transcript.Namespace
}

// scope limits a list to the objects of a sequence.
func (r *run) scope(kind *Kind) []client.ListOption {
	if kind.ClusterScoped {
		return []client.ListOption{client.MatchingLabels{SequenceLabel: r.transcript.Namespace}}
	}
	return []client.ListOption{client.InNamespace(r.transcript.Namespace)}
}

func (r *run) key(o Operation) string { return o.Kind.Kind + "/" + r.namespace(o) + "/" + r.name(o) }

// remember records an object that a server returned.
func (r *run) remember(o Operation, object Object) {
	name, _, _ := unstructured.NestedString(object, "metadata", "name")
	if o.Verb == Create && o.Name == "" {
		r.generated[o.Kind] = append(r.generated[o.Kind], name)
	}
	key := o.Kind.Kind + "/" + r.namespace(o) + "/" + name
	r.seen[key] = append(r.seen[key], runtime.DeepCopyJSON(object))
}

// base returns the base of an operation, and reads it if necessary.
func (r *run) base(o Operation) Object {
	seen := r.seen[r.key(o)]
	switch o.Base {
	case Live:
		get := o
		get.Verb = Get
		if r.get(get); r.answers[len(r.answers)-1].Failure == nil {
			return runtime.DeepCopyJSON(r.answers[len(r.answers)-1].Object)
		}
	case Last:
		if len(seen) > 0 {
			return runtime.DeepCopyJSON(seen[len(seen)-1])
		}
	case First:
		if len(seen) > 0 {
			return runtime.DeepCopyJSON(seen[0])
		}
	}
	content := runtime.DeepCopyJSON(o.Kind.Content)
	if o.Verb == Apply || o.Patch == ApplyPatch {
		content = runtime.DeepCopyJSON(o.Kind.Applied)
	}
	metadata, ok := content["metadata"].(map[string]any)
	if !ok {
		metadata = map[string]any{}
		content["metadata"] = metadata
	}
	if name := r.name(o); name != "" {
		metadata["name"] = name
	}
	if namespace := r.namespace(o); namespace != "" {
		metadata["namespace"] = namespace
	}
	if o.Kind.ClusterScoped {
		labels, ok := metadata["labels"].(map[string]any)
		if !ok {
			labels = map[string]any{}
			metadata["labels"] = labels
		}
		labels[SequenceLabel] = r.transcript.Namespace
	}
	return content
}

// resolve replaces tokens in a value.
func (r *run) resolve(o Operation, value any) any {
	switch value := value.(type) {
	case map[string]any:
		resolved := make(map[string]any, len(value))
		for key, item := range value {
			resolved[key] = r.resolve(o, item)
		}
		return resolved
	case []any:
		resolved := make([]any, 0, len(value))
		for _, item := range value {
			resolved = append(resolved, r.resolve(o, item))
		}
		return resolved
	case string:
		return r.token(o, value)
	}
	return value
}

func (r *run) token(o Operation, text string) string {
	key := r.key(o)
	if another, ok := strings.CutPrefix(text, string(TokenUIDOf)); ok {
		kind, name, _ := strings.Cut(another, "/")
		key, text = kind+"/"+r.namespace(o)+"/"+name, string(TokenUID)
	}
	seen := r.seen[key]
	field := func(i int, name string) string {
		if len(seen) == 0 {
			return "unseen"
		}
		value, _, _ := unstructured.NestedString(seen[i], "metadata", name)
		return value
	}
	switch Token(text) {
	case TokenAnother:
		return r.own(o, "another")
	case TokenNamespace:
		return r.transcript.Namespace
	case TokenUID:
		return field(len(seen)-1, "uid")
	case TokenVersion:
		return field(len(seen)-1, "resourceVersion")
	case TokenFirstVersion:
		return field(0, "resourceVersion")
	}
	return text
}

func (r *run) edits(o Operation, edits []Edit) []Edit {
	resolved := make([]Edit, 0, len(edits))
	for _, e := range edits {
		value := r.resolve(o, e.Value)
		if name, ok := value.(string); ok && e.Path == "metadata/name" && !strings.HasPrefix(name, r.transcript.Namespace) {
			value = r.own(o, name) // a value that is valid for some kinds
		}
		resolved = append(resolved, Edit{Path: e.Path, Value: value})
	}
	return resolved
}

// answer records the result of a call.
func (r *run) answer(o Operation, object runtime.Object, err error) {
	a := Answer{Call: o.String(), Failure: failure(err), Object: content(object)}
	r.answers = append(r.answers, a)
	whole := o.Form != Metadata && o.Subresource != "scale" && o.Subresource != "eviction" && o.Verb != Delete
	if err == nil && whole && !o.DryRun && a.Object != nil {
		r.remember(o, a.Object)
	}
}

// SPDX-License-Identifier: Apache-2.0

// Package past finds out from a recording what users did: which changes of objects are not from the controller.
package past

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	jsonpatch "github.com/evanphx/json-patch/v5"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/resourceversion"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"trueup.dev/converge/internal/inject"
	"trueup.dev/converge/internal/phrase"
	"trueup.dev/observe/recording"
)

// History is what users did, and what they had done before.
type History struct {
	// Given are the objects that the controller did not make and that existed before, and Changes what users changed then.
	Given   []client.Object
	Changes []Change
	// Masks are fields that other clients have added to objects of the controller.
	Masks []Mask
	// Awaits is set if the controller has read an object that never existed and that it does not make. Users may have
	// created it later, when the recording had ended: until then, the controller may fail.
	Awaits bool
}

// Change is an action of users: one of Applied and Deleted is the object that they have created or deleted, or Do is
// what they did, which has a name.
type Change struct {
	Applied, Deleted client.Object
	Name             string
	Do               func(ctx context.Context, c client.Client) error
}

// Mask is a field of an object.
type Mask struct {
	Object client.Object
	Field  string
}

// Of reads a whole recording. The changes of other controllers are left out if actors make them. The error lists all
// problems.
func Of(r *recording.Recording, scheme *runtime.Scheme, actors bool) (*History, error) {
	h := newHistory(r, scheme, actors)
	h.read()
	if len(h.problems) > 0 {
		return nil, errors.Join(h.problems...)
	}
	h.Awaits = h.awaits()
	return &h.History, nil
}

// history finds out what users did: which changes of objects are not made by the controller.
type history struct {
	History

	recording *recording.Recording
	scheme    *runtime.Scheme
	// actors is set if other controllers are part of the scenario: then their changes are not steps.
	actors bool

	objects  map[inject.ObjectID]*pastObject
	problems []error
	// deleted is set once the users have deleted the primary object.
	deleted bool
}

// pastObject is what is known of an object at a point of a recording.
type pastObject struct {
	recording.Ref
	content map[string]any
	// own is set for objects that the controller has made, or that belong to another object.
	own bool
	// absent is set while the object does not exist, and deleting from the time of its deletion by anybody.
	absent, deleting bool
	// missed is set for an object that the controller has read and not found, and written for one that it has written or
	// has tried to write.
	missed, written bool
	// unresolved is set after a write by the controller that may or may not have taken effect.
	unresolved bool
	// versions are the known resource versions since the last creation, and creations counts these.
	versions  []string
	creations int
}

func newHistory(r *recording.Recording, scheme *runtime.Scheme, actors bool) *history {
	return &history{recording: r, scheme: scheme, actors: actors, objects: map[inject.ObjectID]*pastObject{}}
}

func (h *history) problem(field, format string, args ...any) {
	h.problems = append(h.problems, fmt.Errorf("%s: %w", field, fmt.Errorf(format, args...)))
}

// read reads the whole recording.
func (h *history) read() {
	for i, obj := range h.recording.Before {
		h.found(fmt.Sprintf("before[%d]", i), obj, nil)
	}
	for i := range h.recording.Runs {
		h.causes(fmt.Sprintf("runs[%d]", i), &h.recording.Runs[i])
		for n := range h.recording.Runs[i].Calls {
			h.call(fmt.Sprintf("runs[%d].calls[%d]", i, n), &h.recording.Runs[i].Calls[n])
		}
	}
}

// causes notes the objects of events. The changes of a request are merged, so an object may have changed before it was
// deleted, or exist again.
func (h *history) causes(field string, run *recording.Run) {
	for _, cause := range run.Causes {
		if cause.Verb == "Created" && cause.Type != "StartUp" && h.objects[inject.IDOf(cause.Object)] == nil {
			h.missing(nil, cause.Object)
		}
	}
	for i, obj := range run.Objects {
		h.found(fmt.Sprintf("%s.objects[%d]", field, i), obj, nil)
	}
	for _, cause := range run.Causes {
		past := h.objects[inject.IDOf(cause.Object)]
		if cause.Verb == "Deleted" && past != nil && !past.isNewerThan(cause.Version) {
			h.missing(past, cause.Object)
		}
	}
}

// isNewerThan reports whether the object exists in a newer version than a given one.
func (p *pastObject) isNewerThan(version string) bool {
	if len(p.versions) == 0 {
		return false
	}
	order, err := resourceversion.CompareResourceVersion(p.versions[len(p.versions)-1], version)
	return err == nil && order > 0
}

func (h *history) call(field string, c *recording.Call) {
	h.giveNamespace(c.Object.Namespace)
	for i, obj := range c.Objects {
		h.found(fmt.Sprintf("%s.objects[%d]", field, i), obj, c)
	}
	past := h.objects[inject.IDOf(c.Object)]
	if past != nil && inject.IsWrite(c) {
		past.written = true
	}
	switch {
	case c.DryRun || len(c.Stale) > 0:
	case c.Error == nil && c.Verb == "delete" && past != nil:
		past.deleting = true
	case c.Error != nil && inject.IsWrite(c) && isUnresolved(c.Error):
		if past == nil {
			past = &pastObject{Ref: c.Object, absent: true, written: true}
			h.objects[inject.IDOf(c.Object)] = past
		}
		past.unresolved = true
	case c.Error != nil && c.Verb == "get" && c.Error.Reason == "NotFound":
		h.missing(past, c.Object)
		h.objects[inject.IDOf(c.Object)].missed = true
	}
}

// awaits reports whether the controller has read an object that never existed and that it does not make. Users may have
// created it later, when the recording had ended: until then, the controller may fail.
func (h *history) awaits() bool {
	for _, past := range h.objects {
		if past.missed && !past.written && past.creations == 0 && !h.isPrimary(past.Ref) {
			return true
		}
	}
	return false
}

// isUnresolved reports whether it is not known whether a write took effect: the server has not answered, or only that
// it failed.
func isUnresolved(err *recording.Error) bool { return err.Code == 0 || err.Code >= 500 }

// missing notes that an object does not exist.
func (h *history) missing(past *pastObject, ref recording.Ref) {
	if past == nil {
		h.objects[inject.IDOf(ref)] = &pastObject{Ref: ref, absent: true}
		return
	}
	if past.absent {
		return
	}
	if !past.deleting {
		h.delete(past)
	}
	past.absent, past.deleting, past.content, past.versions = true, false, nil, nil
}

// delete adds the step in which users delete an object, unless it is a consequence of another deletion.
func (h *history) delete(past *pastObject) {
	past.deleting = true
	if h.isPrimary(past.Ref) {
		h.deleted = true
	} else if past.own && (h.deleted || h.actors) {
		return
	}
	if obj := h.decode("", past.Ref, map[string]any{}); obj != nil {
		h.Changes = append(h.Changes, Change{Deleted: obj})
	}
}

func (h *history) isPrimary(ref recording.Ref) bool {
	return inject.IDOf(ref) == inject.IDOf(h.recording.Object)
}

// found notes a version of an object. The call is nil for objects before the first run.
func (h *history) found(field string, obj recording.Object, c *recording.Call) {
	h.giveNamespace(obj.Namespace)
	past := h.objects[inject.IDOf(obj.Ref)]
	if len(obj.Content) == 0 {
		if past != nil && past.content != nil {
			past.absent = false
		}
		return // the same version as before, or only its metadata
	}
	var content map[string]any
	if err := json.Unmarshal(obj.Content, &content); err != nil {
		h.problem(field, "content: %w", err)
		return
	}
	isOwn := c != nil && inject.IsWrite(c) && c.Error == nil
	known := past != nil
	if !known {
		past = &pastObject{Ref: obj.Ref}
		h.objects[inject.IDOf(obj.Ref)] = past
	}
	if past.content != nil && uidIn(past.content) != uidIn(content) {
		h.missing(past, obj.Ref)
	}
	before := past.content
	past.content, past.absent = content, false
	past.versions = append(past.versions, obj.ResourceVersion)
	if before == nil {
		past.creations++
		past.own = past.own || isOwn || past.unresolved || h.belongs(content)
		h.appeared(field, past, known)
	} else if !isOwn && !past.unresolved {
		h.changed(field, past, before)
	}
	if !isOwn {
		past.unresolved = false
	}
	if isDeleting(content) && !past.deleting {
		h.delete(past)
	}
}

// belongs reports whether an object belongs to another one: the controller or another one has made it.
func (h *history) belongs(content map[string]any) bool {
	metadata, _ := content["metadata"].(map[string]any)
	owners, _ := metadata["ownerReferences"].([]any)
	return slices.ContainsFunc(owners, func(owner any) bool {
		fields, _ := owner.(map[string]any)
		return fields["controller"] == true || fields["kind"] == h.recording.Object.Kind &&
			fields["name"] == h.recording.Object.Name
	})
}

// appeared adds the step in which users create an object, or adds it to the given ones. known is set if it was known
// before that it does not exist.
func (h *history) appeared(field string, past *pastObject, known bool) {
	isPrimary := h.isPrimary(past.Ref)
	if past.own && !isPrimary {
		return
	}
	metadata, _ := past.content["metadata"].(map[string]any)
	kept := map[string]any{}
	for _, name := range []string{"name", "namespace", "labels", "annotations", "ownerReferences", "finalizers"} {
		if value, ok := metadata[name]; ok && (!isPrimary || name != "finalizers") {
			kept[name] = value
		}
	}
	content := map[string]any{}
	for name, value := range past.content {
		if name != "status" || !isPrimary {
			content[name] = value
		}
	}
	content["metadata"] = kept
	switch obj := h.decode(field, past.Ref, content); {
	case obj == nil:
	case isPrimary || known:
		h.Changes = append(h.Changes, Change{Applied: obj})
	default:
		h.Given = append(h.Given, obj)
	}
	h.deleted = h.deleted && !isPrimary
}

// giveNamespace adds a namespace to the given objects, unless it exists in each cluster.
func (h *history) giveNamespace(name string) {
	isGiven := slices.ContainsFunc(h.Given, func(obj client.Object) bool {
		_, ok := obj.(*corev1.Namespace)
		return ok && obj.GetName() == name
	})
	if name == "" || name == metav1.NamespaceDefault || strings.HasPrefix(name, "kube-") || isGiven ||
		!h.scheme.Recognizes(corev1.SchemeGroupVersion.WithKind("Namespace")) {
		return
	}
	h.Given = append(h.Given, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}})
}

// changed adds the step in which users change an object.
func (h *history) changed(field string, past *pastObject, before map[string]any) {
	if past.own && !h.isPrimary(past.Ref) && h.actors {
		return
	}
	obj := h.decode(field, past.Ref, map[string]any{})
	if obj == nil {
		return
	}
	if patch := mergePatch(wanted(before), wanted(past.content)); patch != nil {
		h.Changes = append(h.Changes, merge("change "+phrase.Describe(obj), obj, patch, ""))
	}
	if past.own && !h.isPrimary(past.Ref) {
		h.mask(obj, before, past.content)
	}
	if h.actors {
		return // the status is written by an actor
	}
	if patch := mergePatch(statusIn(before), statusIn(past.content)); patch != nil {
		h.Changes = append(h.Changes, merge("change status of "+phrase.Describe(obj), obj, patch, "status"))
	}
}

// mask masks the labels and annotations that another client has added to an object that the controller makes. They are
// lost when it is created again, which is not a mistake.
func (h *history) mask(obj client.Object, before, after map[string]any) {
	for _, field := range []string{"labels", "annotations"} {
		was, _, _ := unstructured.NestedMap(before, "metadata", field)
		is, _, _ := unstructured.NestedMap(after, "metadata", field)
		for key := range is {
			path := fmt.Sprintf("metadata.%s[%s]", field, key)
			isMasked := slices.ContainsFunc(h.Masks, func(m Mask) bool {
				return m.Field == path && m.Object.GetObjectKind().GroupVersionKind() == obj.GetObjectKind().GroupVersionKind()
			})
			if _, ok := was[key]; !ok && !isMasked {
				h.Masks = append(h.Masks, Mask{Object: obj, Field: path})
			}
		}
	}
}

// merge is a change that sends a JSON merge patch.
func merge(name string, obj client.Object, patch []byte, subresource string) Change {
	return Change{Name: name, Do: func(ctx context.Context, c client.Client) error {
		target, raw := obj.DeepCopyObject().(client.Object), client.RawPatch(types.MergePatchType, patch)
		if subresource != "" {
			return client.IgnoreNotFound(c.SubResource(subresource).Patch(ctx, target, raw))
		}
		return client.IgnoreNotFound(c.Patch(ctx, target, raw))
	}}
}

// decode returns an object of the type that the scheme has for it, or nil if there is a problem.
func (h *history) decode(field string, ref recording.Ref, content map[string]any) client.Object {
	empty, err := h.scheme.New(KindOf(ref))
	obj, ok := empty.(client.Object)
	if err != nil || !ok {
		h.problem(strings.TrimSpace(field+" "+ref.String()), "the scheme of the scenario does not have %s", KindOf(ref))
		return nil
	}
	data, err := json.Marshal(content)
	if err == nil {
		err = json.Unmarshal(data, obj)
	}
	if err != nil {
		h.problem(field, "content: %w", err)
		return nil
	}
	obj.SetNamespace(ref.Namespace)
	obj.SetName(ref.Name)
	obj.GetObjectKind().SetGroupVersionKind(KindOf(ref))
	return obj
}

func uidIn(content map[string]any) any {
	metadata, _ := content["metadata"].(map[string]any)
	return metadata["uid"]
}

func isDeleting(content map[string]any) bool {
	metadata, _ := content["metadata"].(map[string]any)
	return metadata["deletionTimestamp"] != nil
}

// KindOf returns the kind of an object of a recording.
func KindOf(ref recording.Ref) schema.GroupVersionKind {
	return schema.GroupVersionKind{Group: ref.Group, Version: ref.Version, Kind: ref.Kind}
}

// mergePatch returns the JSON merge patch from one object to another one, or nil if they are equal.
func mergePatch(before, after map[string]any) []byte {
	from, errFrom := json.Marshal(before)
	to, errTo := json.Marshal(after)
	if errFrom != nil || errTo != nil {
		return nil
	}
	patch, err := jsonpatch.CreateMergePatch(from, to)
	if err != nil || string(patch) == "{}" {
		return nil
	}
	return patch
}

// statusIn returns the status in the content of an object, as the whole content.
func statusIn(content map[string]any) map[string]any {
	status, ok := content["status"].(map[string]any)
	if !ok {
		status = map[string]any{}
	}
	return map[string]any{"status": status}
}

// wanted returns the part of an object that users decide about: all but the status, and of the metadata the labels and
// annotations.
func wanted(content map[string]any) map[string]any {
	part := maps.Clone(content)
	delete(part, "status")
	delete(part, "metadata")
	delete(part, "apiVersion")
	delete(part, "kind")
	metadata, _ := content["metadata"].(map[string]any)
	kept := map[string]any{}
	for _, field := range []string{"labels", "annotations"} {
		if value, ok := metadata[field]; ok {
			kept[field] = value
		}
	}
	if len(kept) > 0 {
		part["metadata"] = kept
	}
	return part
}

// SPDX-License-Identifier: Apache-2.0

package memapi

import (
	"encoding/base64"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// page is a part of the objects of a kind, at a version.
type page struct {
	records   []*record
	version   int64
	next      string // the start of the next page
	remaining *int64 // the number of objects after this page, nil if unknown
}

// list writes the selected objects into a list of the caller.
func (s *Server) list(t *table, list client.ObjectList, options *client.ListOptions) error {
	p, err := s.page(t, options)
	if err != nil {
		return err
	}
	switch list := list.(type) {
	case *unstructured.UnstructuredList:
		list.Object = map[string]any{}
		list.SetGroupVersionKind(t.kind.GroupVersion().WithKind(t.kind.Kind + "List"))
		list.Items = make([]unstructured.Unstructured, len(p.records))
		for i, r := range p.records {
			if err := t.respond(r, &list.Items[i]); err != nil {
				return err
			}
		}
	case *metav1.PartialObjectMetadataList:
		*list = metav1.PartialObjectMetadataList{
			TypeMeta: list.TypeMeta, Items: make([]metav1.PartialObjectMetadata, len(p.records)),
		}
		for i, r := range p.records {
			if err := t.respond(r, &list.Items[i]); err != nil {
				return err
			}
		}
	default:
		if err := t.fill(list, p.records); err != nil {
			return err
		}
	}
	list.SetResourceVersion(strconv.FormatInt(p.version, 10))
	if p.next != "" || t.kind.Custom { // unstructured lists contain an empty token
		list.SetContinue(p.next)
	}
	if p.remaining != nil {
		list.SetRemainingItemCount(p.remaining)
	}
	return nil
}

// fill writes objects into a list of a Go type. Custom objects have their kind set, because they are sent as JSON.
func (t *table) fill(list client.ObjectList, records []*record) error {
	reflect.ValueOf(list).Elem().SetZero()
	pointer, err := meta.GetItemsPtr(list)
	if err != nil {
		return err
	}
	items := reflect.ValueOf(pointer).Elem()
	if len(records) == 0 {
		if t.kind.Custom {
			items.Set(reflect.MakeSlice(items.Type(), 0, 0))
		}
		return nil
	}
	items.Set(reflect.MakeSlice(items.Type(), len(records), len(records)))
	pointers := items.Type().Elem().Kind() == reflect.Pointer
	for i, r := range records {
		item := items.Index(i)
		if pointers {
			item.Set(reflect.New(item.Type().Elem()))
		} else {
			item = item.Addr()
		}
		obj, ok := reflect.Indirect(item).Addr().Interface().(client.Object)
		if !ok {
			return fmt.Errorf("items of %T are not objects", list)
		}
		if err := t.respond(r, obj); err != nil {
			return err
		}
		if t.kind.Custom {
			obj.GetObjectKind().SetGroupVersionKind(t.kind.GroupVersionKind)
		}
	}
	return nil
}

// page returns the selected objects.
func (s *Server) page(t *table, options *client.ListOptions) (page, error) {
	if err := validateListOptions(options, false); err != nil {
		return page{}, err
	}
	sel, err := newSelector(t, options)
	if err != nil {
		return page{}, err
	}
	p := page{records: t.sorted, version: s.version}
	var after client.ObjectKey
	limit := options.Limit
	if options.Continue != "" {
		if p.version, after, err = parseContinue(options.Continue); err != nil {
			return page{}, err
		}
	} else if raw := options.Raw; raw != nil && raw.ResourceVersion != "" {
		if p.version, err = s.listVersion(raw, limit); err != nil {
			return page{}, err
		}
	}
	if p.version != s.version {
		if p.version < s.compacted {
			return page{}, apierrors.NewResourceExpired(expiredMessage(options.Continue != ""))
		}
		p.records = s.snapshot(t, p.version)
	}
	return p, s.take(&p, t, sel, after, limit)
}

// take returns the selected objects after a key, up to a limit. If the namespace has more objects there is a next page,
// even if none of these is selected and the page will be empty.
func (s *Server) take(p *page, t *table, sel selector, after client.ObjectKey, limit int64) error {
	all := p.records
	p.records = make([]*record, 0, len(all))
	left := int64(0)
	var unreadable []error
	for i, r := range all {
		r, err := s.as(t, r)
		if err != nil {
			unreadable = append(unreadable, t.corrupt(all[i].key, false, err))
			continue
		}
		switch {
		case after.Name != "" && compareKeys(r.key, after) <= 0, sel.namespace != "" && r.key.Namespace != sel.namespace:
		case limit > 0 && int64(len(p.records)) == limit:
			left++
		case sel.matches(t, r.key, r.object):
			p.records = append(p.records, r)
		}
	}
	if left > 0 && !sel.single() {
		p.next = formatContinue(p.version, p.records[limit-1].key)
		if sel.all() {
			p.remaining = &left
		}
	}
	return t.unreadable(unreadable)
}

// listVersion returns the resource version at which to list, if the options set one.
func (s *Server) listVersion(raw *metav1.ListOptions, limit int64) (int64, error) {
	version, err := strconv.ParseInt(raw.ResourceVersion, 10, 64)
	if err != nil {
		return 0, apierrors.NewBadRequest(fmt.Sprintf("invalid resource version %q: %v", raw.ResourceVersion, err))
	}
	if version > s.version {
		return 0, tooLargeVersion(version, s.version)
	}
	if version == 0 || raw.ResourceVersionMatch == metav1.ResourceVersionMatchNotOlderThan ||
		raw.ResourceVersionMatch == "" && limit == 0 {
		return s.version, nil
	}
	return version, nil
}

func tooLargeVersion(wanted, current int64) error {
	err := apierrors.NewTimeoutError(fmt.Sprintf("Too large resource version: %d, current: %d", wanted, current), 1)
	err.ErrStatus.Details.Causes = []metav1.StatusCause{
		{Type: metav1.CauseTypeResourceVersionTooLarge, Message: "Too large resource version"},
	}
	return err
}

func expiredMessage(continued bool) string {
	if continued {
		return "The provided continue parameter is too old to display a consistent list result. You can start a new list " +
			"without the continue parameter, " +
			"or use the continue token in this response to retrieve the remainder of the results. Continuing with the " +
			"provided token results in an " +
			"inconsistent list - objects that were created, modified, or deleted between the time the first chunk was " +
			"returned and now may show up in the list."
	}
	return "The resourceVersion for the provided list is too old."
}

// snapshot returns the objects of a kind at a version.
func (s *Server) snapshot(t *table, version int64) []*record {
	records := slices.Clone(t.sorted)
	events := s.Events(version)
	for i := len(events) - 1; i >= 0; i-- {
		event := events[i]
		if event.record.table.shelf != t.shelf {
			continue
		}
		at, found := slices.BinarySearchFunc(records, event.Key, func(r *record, key client.ObjectKey) int {
			return compareKeys(r.key, key)
		})
		switch {
		case event.Type == watch.Added:
			records = slices.Delete(records, at, at+1)
		case found:
			records[at] = event.before
		default:
			records = slices.Insert(records, at, event.before)
		}
	}
	return records
}

func formatContinue(version int64, last client.ObjectKey) string {
	return base64.RawURLEncoding.EncodeToString(fmt.Appendf(nil, "%d/%s/%s", version, last.Namespace, last.Name))
}

func parseContinue(token string) (int64, client.ObjectKey, error) {
	text, err := base64.RawURLEncoding.DecodeString(token)
	parts := strings.Split(string(text), "/")
	if err == nil && len(parts) != 3 {
		err = errors.New("wrong number of parts")
	}
	if err != nil {
		return 0, client.ObjectKey{}, invalidContinue(err)
	}
	version, err := strconv.ParseInt(parts[0], 10, 64)
	if err != nil {
		return 0, client.ObjectKey{}, invalidContinue(err)
	}
	return version, client.ObjectKey{Namespace: parts[1], Name: parts[2]}, nil
}

func invalidContinue(err error) error {
	return apierrors.NewBadRequest(fmt.Sprintf("invalid continue token: continue key is not valid: %v", err))
}

// deleteAll deletes the selected objects one by one for a client.
func (s *Server) deleteAll(t *table, by string, options *client.DeleteAllOfOptions) error {
	p, err := s.page(t, &options.ListOptions)
	if err != nil {
		return err
	}
	for _, r := range p.records {
		if err := s.delete(t, r.key, by, options.AsDeleteOptions()); err != nil && !apierrors.IsNotFound(err) {
			return err
		}
	}
	return nil
}

// selector selects the objects of a list or a watch. Its zero value selects all objects.
type selector struct {
	namespace string
	labels    labels.Selector
	fields    fields.Selector
}

// selectable are the fields, by kind, that field selectors support besides name and namespace.
var selectable = map[string][]string{
	"/Pod": {
		"spec.nodeName", "spec.restartPolicy", "spec.schedulerName", "spec.serviceAccountName", "spec.hostNetwork",
		"status.phase", "status.podIP",
		"status.nominatedNodeName",
	},
	"/Event": {
		"involvedObject.kind", "involvedObject.namespace", "involvedObject.name", "involvedObject.uid",
		"involvedObject.apiVersion",
		"involvedObject.resourceVersion", "involvedObject.fieldPath", "reason", "reportingComponent", "source", "type",
	},
	"/Secret":                {"type"},
	"/Namespace":             {"status.phase"},
	"/Node":                  {"spec.unschedulable"},
	"/Service":               {"spec.clusterIP", "spec.type"},
	"/ReplicationController": {"status.replicas"},
	"apps/ReplicaSet":        {"status.replicas"},
	"batch/Job":              {"status.successful"},
}

func newSelector(t *table, options *client.ListOptions) (selector, error) {
	sel := selector{namespace: options.Namespace, labels: options.LabelSelector, fields: options.FieldSelector}
	if !t.kind.Namespaced {
		sel.namespace = ""
	}
	if raw := options.Raw; raw != nil {
		var err error
		if sel.labels == nil && raw.LabelSelector != "" {
			if sel.labels, err = labels.Parse(raw.LabelSelector); err != nil {
				return sel, apierrors.NewBadRequest(err.Error())
			}
		}
		if sel.fields == nil && raw.FieldSelector != "" {
			if sel.fields, err = fields.ParseSelector(raw.FieldSelector); err != nil {
				return sel, apierrors.NewBadRequest(err.Error())
			}
		}
	}
	if sel.labels != nil && sel.labels.Empty() {
		sel.labels = nil
	}
	if sel.fields == nil || sel.fields.Empty() {
		sel.fields = nil
		return sel, nil
	}
	for _, requirement := range sel.fields.Requirements() {
		if err := t.checkField(requirement.Field); err != nil {
			return sel, apierrors.NewBadRequest(err.Error())
		}
	}
	return sel, nil
}

// checkField refuses field selectors for unsupported fields.
func (t *table) checkField(name string) error {
	known := selectable[t.kind.Group+"/"+t.kind.Kind]
	if t.kind.Custom {
		known = t.kind.Selectable
	}
	switch {
	case name == "metadata.name", name == "metadata.namespace" && t.kind.Namespaced, slices.Contains(known, name):
		return nil
	case name == "metadata.namespace" && !t.kind.Custom && known == nil:
		return nil
	case t.resource.Resource == "jobs":
		return fmt.Errorf("field label %q not supported for Job", name)
	case t.kind.Custom, known != nil:
		return fmt.Errorf("field label not supported: %s", name)
	default:
		return fmt.Errorf(`%q is not a known field selector: only "metadata.name", "metadata.namespace"`, name)
	}
}

func (sel *selector) all() bool {
	return sel.labels == nil && sel.fields == nil
}

// single reports whether the selector selects one object by name, which is read directly.
func (sel *selector) single() bool {
	if sel.fields == nil {
		return false
	}
	_, found := sel.fields.RequiresExactMatch("metadata.name")
	return found
}

// matches reports whether an object is selected.
func (sel *selector) matches(t *table, key client.ObjectKey, obj client.Object) bool {
	if sel.namespace != "" && sel.namespace != key.Namespace {
		return false
	}
	if sel.labels != nil && !sel.labels.Matches(labels.Set(obj.GetLabels())) {
		return false
	}
	if sel.fields == nil {
		return true
	}
	set := fields.Set{"metadata.name": key.Name, "metadata.namespace": key.Namespace}
	var content map[string]any
	for _, requirement := range sel.fields.Requirements() {
		if _, known := set[requirement.Field]; known {
			continue
		}
		if content == nil {
			content = t.contentOf(obj)
		}
		value, found, _ := unstructured.NestedFieldNoCopy(content, strings.Split(requirement.Field, ".")...)
		if set[requirement.Field] = ""; found {
			set[requirement.Field] = fmt.Sprint(value)
		}
	}
	return sel.fields.Matches(set)
}

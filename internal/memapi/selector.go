// SPDX-License-Identifier: Apache-2.0

package memapi

import (
	"fmt"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

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

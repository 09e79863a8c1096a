// SPDX-License-Identifier: Apache-2.0

package httpapi

import (
	"fmt"
	"io"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/json"
	"k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/yaml"
)

// decode returns the object in the body of a request. It has the name of the URL, and the namespace.
func (r *request) decode() (*unstructured.Unstructured, error) {
	content, err := r.body()
	if err != nil {
		return nil, err
	}
	if r.newEvent {
		renameEvent(content, true)
	}
	obj := &unstructured.Unstructured{Object: content}
	if r.subresource == "" {
		if gvk := obj.GroupVersionKind(); !gvk.Empty() && gvk != r.kind.GroupVersionKind {
			return nil, apierrors.NewBadRequest(fmt.Sprintf(
				"%s in version %q cannot be handled as a %s: the path is that of %s", gvk.Kind, gvk.GroupVersion(), r.kind.Kind,
				r.kind.GroupVersionKind,
			))
		}
		obj.SetGroupVersionKind(r.kind.GroupVersionKind)
	}
	switch {
	case obj.GetNamespace() == "":
		obj.SetNamespace(r.namespace)
	case r.kind.Namespaced && obj.GetNamespace() != r.namespace:
		return nil, apierrors.NewBadRequest(
			"the namespace of the provided object does not match the namespace sent on the request",
		)
	}
	switch {
	case r.name == "":
	case obj.GetName() == "":
		obj.SetName(r.name)
	case obj.GetName() != r.name:
		return nil, apierrors.NewBadRequest(fmt.Sprintf(
			"the name of the object (%s) does not match the name on the URL (%s)", obj.GetName(), r.name,
		))
	}
	return obj, nil
}

// body returns the body of a request as maps and lists.
func (r *request) body() (map[string]any, error) {
	data, err := io.ReadAll(r.Body)
	if err != nil {
		return nil, err
	}
	content := map[string]any{}
	if strings.Contains(r.Header.Get("Content-Type"), "protobuf") {
		var typed runtime.Object
		if typed, _, err = scheme.Codecs.UniversalDeserializer().Decode(data, nil, nil); err == nil {
			content, err = runtime.DefaultUnstructuredConverter.ToUnstructured(typed)
		}
	} else {
		if strings.Contains(r.Header.Get("Content-Type"), "yaml") {
			data, err = yaml.YAMLToJSON(data)
		}
		if err == nil {
			if err = json.Unmarshal(data, &content); err != nil && r.kind != nil {
				err = fmt.Errorf(
					"the object provided is unrecognized (must be of type %s): couldn't get version/kind; json parse error: %w (%s)",
					r.kind.Kind, err, summary(data),
				)
			}
		}
		if err == nil && r.server != nil {
			err = r.duplicateFields(data)
		}
	}
	if err != nil {
		return nil, apierrors.NewBadRequest(err.Error())
	}
	return content, nil
}

// summary returns the start of a body as a server shows it in errors.
func summary(data []byte) string {
	const longest = 30
	switch {
	case len(data) == 0:
		return "<empty>"
	case data[0] != '{':
		return fmt.Sprintf("%x", data[:min(len(data), longest)])
	case len(data) > longest:
		return string(data[:longest]) + " ..."
	}
	return string(data)
}

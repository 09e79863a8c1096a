// SPDX-License-Identifier: Apache-2.0

package httpapi

import (
	"fmt"
	"io"

	autoscalingv1 "k8s.io/api/autoscaling/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metascheme "k8s.io/apimachinery/pkg/apis/meta/internalversion/scheme"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/json"
	"k8s.io/apiserver/pkg/endpoints/handlers/negotiation"
	"k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/yaml"

	"trueup.dev/internal/memapi"
)

// decode returns the object in the body of a request, which has the name and the namespace of the URL.
func (r *request) decode() (*unstructured.Unstructured, error) {
	content, data, err := r.body()
	if err != nil {
		return nil, err
	}
	if r.newEvent {
		renameEvent(content, true)
	}
	obj := &unstructured.Unstructured{Object: content}
	if err := r.checkKind(obj, data); err != nil {
		return nil, err
	}
	if r.subresource == "" {
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
	case obj.GetName() == "" && r.verb == "update":
		// checkName in k8s.io/apiserver/pkg/endpoints/handlers/rest.go
		return nil, apierrors.NewBadRequest(fmt.Sprintf(
			"the name of the object (%s based on URL) was undeterminable: name must be provided", r.name,
		))
	case obj.GetName() == "":
		obj.SetName(r.name)
	case obj.GetName() != r.name:
		return nil, apierrors.NewBadRequest(fmt.Sprintf(
			"the name of the object (%s) does not match the name on the URL (%s)", obj.GetName(), r.name,
		))
	}
	return obj, nil
}

// checkKind returns the error about a body of another kind than the path expects: Decode and AcceptsGroupVersion in
// k8s.io/apiserver/pkg/endpoints/handlers/create.go and update.go.
func (r *request) checkKind(obj *unstructured.Unstructured, data []byte) error {
	expected, custom := r.kind.GroupVersionKind, r.kind.Custom
	switch r.subresource {
	case "", "status", "approval", "finalize":
	case "scale":
		expected, custom = autoscalingv1.SchemeGroupVersion.WithKind("Scale"), false
	default:
		return nil // eviction and binding check it themselves
	}
	found := obj.GroupVersionKind()
	otherVersion := func() error {
		return apierrors.NewBadRequest(fmt.Sprintf(
			"the API version in the data (%s) does not match the expected API version (%s)",
			found.GroupVersion(), expected.GroupVersion(),
		))
	}
	if custom {
		switch {
		case found.Kind == "":
			return r.unrecognized(runtime.NewMissingKindErr(string(data)), data)
		case found.GroupVersion() != expected.GroupVersion():
			return otherVersion()
		case found.Kind != expected.Kind && r.subresource == "":
			return apierrors.NewInvalid(found.GroupKind(), obj.GetName(), r.kind.ValidateType(found))
		}
		return nil
	}
	if found.Kind == "" {
		found.Kind = expected.Kind
	}
	if found.Version == "" {
		found.Group, found.Version = expected.Group, expected.Version
	}
	switch {
	case found == expected:
		return nil
	case found.GroupKind() == expected.GroupKind() && scheme.Scheme.Recognizes(found):
		return otherVersion()
	}
	return apierrors.NewBadRequest(fmt.Sprintf("%s in version %q cannot be handled as a %s: %v",
		found.Kind, found.Version, expected.Kind, memapi.DecodeForeign(data, found, expected)))
}

// unrecognized is the error about a body without a kind: transformDecodeError in
// k8s.io/apiserver/pkg/endpoints/handlers/rest.go.
func (r *request) unrecognized(err error, data []byte) error {
	return apierrors.NewBadRequest(fmt.Sprintf(
		"the object provided is unrecognized (must be of type %s): %v (%s)", r.kind.Kind, err, summary(data),
	))
}

// mediaType returns the media type of the body, or an error if a server does not accept it.
func (r *request) mediaType() (string, error) {
	// All API groups accept the same types as the one of options.
	info, err := negotiation.NegotiateInputSerializer(r.Request, false, metascheme.Codecs)
	return info.MediaType, err
}

// body returns the body of a request as maps and lists, and as JSON.
func (r *request) body() (content map[string]any, data []byte, err error) {
	mediaType, err := r.mediaType()
	if err != nil {
		return nil, nil, err
	}
	if data, err = io.ReadAll(r.Body); err != nil {
		return nil, nil, err
	}
	content = map[string]any{}
	if mediaType == runtime.ContentTypeProtobuf {
		var typed runtime.Object
		if typed, _, err = scheme.Codecs.UniversalDeserializer().Decode(data, nil, nil); err == nil {
			content, err = runtime.DefaultUnstructuredConverter.ToUnstructured(typed)
		}
		if err == nil {
			data, err = json.Marshal(content)
		}
	} else {
		if mediaType == runtime.ContentTypeYAML {
			data, err = yaml.YAMLToJSON(data)
		}
		if err == nil {
			if err = json.Unmarshal(data, &content); err != nil && r.kind != nil {
				err = r.unrecognized(fmt.Errorf("couldn't get version/kind; json parse error: %w", err), data)
			}
		}
		if err == nil && r.server != nil {
			err = r.duplicateFields(data)
		}
	}
	if err != nil {
		return nil, nil, apierrors.NewBadRequest(err.Error())
	}
	return content, data, nil
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

// SPDX-License-Identifier: Apache-2.0

package httpapi

import (
	"io"
	"net/http"
	"net/url"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	metavalidation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"trueup.dev/internal/memapi"
)

// request is an HTTP request for a target.
type request struct {
	*http.Request
	target

	client   client.WithWatch
	server   *memapi.Server // optional
	query    url.Values
	warnings []string
	newEvent bool // see asCoreEvent
}

// perform performs a request, and returns the content of the response and its status code.
func (r *request) perform() (content any, code int, err error) {
	code = http.StatusOK
	switch named := r.name != ""; {
	case r.verb == "get":
		if content, err = r.get(); err == nil && r.asTable() {
			content, err = r.table(content)
		}
	case r.verb == "watch":
		content, err = r.watch()
	case r.verb == "list":
		if content, err = r.list(); err == nil && r.asTable() {
			content, err = r.table(content)
		}
	case r.verb == "create" && (!named || r.subresource != ""):
		code = http.StatusCreated
		content, err = r.create()
	case r.verb == "update" && named:
		code = r.createdOrOK()
		content, err = r.update()
	case r.verb == "patch" && named:
		code = r.createdOrOK()
		content, err = r.patch()
	case (r.verb == "delete" || r.verb == "deletecollection") && r.subresource == "":
		content, err = r.delete()
	default:
		err = errorOf(http.StatusMethodNotAllowed)
	}
	return content, code, err
}

// createdOrOK returns the status code of a write, which may create the object.
func (r *request) createdOrOK() int {
	if r.server != nil && r.server.Get(r.kind.GroupVersionKind, r.key()) == nil {
		return http.StatusCreated
	}
	return http.StatusOK
}

func (r *request) key() types.NamespacedName {
	return types.NamespacedName{Namespace: r.namespace, Name: r.name}
}

// asMetadata reports whether a request asks for PartialObjectMetadata.
func (r *request) asMetadata() bool {
	return strings.Contains(r.Header.Get("Accept"), "as=PartialObjectMetadata")
}

func (r *request) get() (any, error) {
	obj, key := r.object(), r.key()
	if r.subresource != "" {
		sub := &unstructured.Unstructured{Object: map[string]any{}}
		return sub, r.client.SubResource(r.subresource).Get(r.Context(), obj, sub)
	}
	if r.asMetadata() {
		partial := &metav1.PartialObjectMetadata{}
		partial.SetGroupVersionKind(r.kind.GroupVersionKind)
		err := r.client.Get(r.Context(), key, partial)
		partial.SetGroupVersionKind(partialKind)
		return partial, err
	}
	return obj, r.client.Get(r.Context(), key, obj)
}

var (
	partialKind     = metav1.SchemeGroupVersion.WithKind("PartialObjectMetadata")
	partialListKind = metav1.SchemeGroupVersion.WithKind("PartialObjectMetadataList")
)

func (r *request) list() (any, error) {
	options, err := r.listOptions()
	if err != nil {
		return nil, err
	}
	list := r.newList()
	err = r.client.List(r.Context(), list, options)
	// Only items of custom kinds name their kind.
	switch list := list.(type) {
	case *metav1.PartialObjectMetadataList:
		list.SetGroupVersionKind(partialListKind)
		for i := range list.Items {
			list.Items[i].TypeMeta = metav1.TypeMeta{}
		}
	case *unstructured.UnstructuredList:
		for i := range list.Items {
			if !r.kind.Custom {
				delete(list.Items[i].Object, "kind")
				delete(list.Items[i].Object, "apiVersion")
			}
		}
	}
	return list, err
}

// newList returns a list of the kind, in the form that a request asks for.
func (r *request) newList() client.ObjectList {
	gvk := r.kind.GroupVersionKind
	gvk.Kind += "List"
	if r.asMetadata() {
		list := &metav1.PartialObjectMetadataList{}
		list.SetGroupVersionKind(gvk)
		return list
	}
	list := &unstructured.UnstructuredList{}
	list.SetGroupVersionKind(gvk)
	return list
}

func (r *request) listOptions() (*client.ListOptions, error) {
	raw := &metav1.ListOptions{}
	if err := metav1.Convert_url_Values_To_v1_ListOptions(&r.query, raw, nil); err != nil {
		return nil, apierrors.NewBadRequest(err.Error())
	}
	options := &client.ListOptions{
		Namespace: r.namespace, Limit: raw.Limit, Continue: raw.Continue, Raw: raw,
	}
	if raw.LabelSelector != "" {
		selector, err := labels.Parse(raw.LabelSelector)
		if err != nil {
			return nil, apierrors.NewBadRequest(err.Error())
		}
		options.LabelSelector = selector
	}
	if raw.FieldSelector != "" {
		selector, err := fields.ParseSelector(raw.FieldSelector)
		if err != nil {
			return nil, apierrors.NewBadRequest(err.Error())
		}
		options.FieldSelector = selector
	}
	return options, nil
}

func (r *request) create() (any, error) {
	if _, err := r.mediaType(); err != nil { // an update checks it after its options
		return nil, err
	}
	raw := &metav1.CreateOptions{}
	if err := metav1.Convert_url_Values_To_v1_CreateOptions(&r.query, raw, nil); err != nil {
		return nil, apierrors.NewBadRequest(err.Error())
	}
	if err := invalidOptions("CreateOptions", metavalidation.ValidateCreateOptions(raw)); err != nil {
		return nil, err
	}
	body, err := r.decode()
	if err != nil {
		return nil, err
	}
	options := client.CreateOptions{DryRun: raw.DryRun, FieldManager: raw.FieldManager, Raw: raw}
	if r.subresource != "" {
		return body, r.client.SubResource(r.subresource).Create(
			r.Context(), r.object(), body, &client.SubResourceCreateOptions{CreateOptions: options},
		)
	}
	return body, r.client.Create(r.Context(), body, &options)
}

func (r *request) update() (any, error) {
	raw := &metav1.UpdateOptions{}
	if err := metav1.Convert_url_Values_To_v1_UpdateOptions(&r.query, raw, nil); err != nil {
		return nil, apierrors.NewBadRequest(err.Error())
	}
	if err := invalidOptions("UpdateOptions", metavalidation.ValidateUpdateOptions(raw)); err != nil {
		return nil, err
	}
	body, err := r.decode()
	if err != nil {
		return nil, err
	}
	options := client.UpdateOptions{DryRun: raw.DryRun, FieldManager: raw.FieldManager, Raw: raw}
	if r.subresource != "" {
		return body, r.client.SubResource(r.subresource).Update(
			r.Context(), r.object(), &client.SubResourceUpdateOptions{UpdateOptions: options, SubResourceBody: body},
		)
	}
	return body, r.client.Update(r.Context(), body, &options)
}

// invalidOptions returns the error of a request with invalid options.
func invalidOptions(kind string, errs field.ErrorList) error {
	if len(errs) == 0 {
		return nil
	}
	return apierrors.NewInvalid(schema.GroupKind{Group: metav1.GroupName, Kind: kind}, "", errs)
}

func (r *request) patch() (any, error) {
	raw := &metav1.PatchOptions{}
	if err := metav1.Convert_url_Values_To_v1_PatchOptions(&r.query, raw, nil); err != nil {
		return nil, apierrors.NewBadRequest(err.Error())
	}
	data, err := io.ReadAll(r.Body)
	if err != nil {
		return nil, err
	}
	kind, _, _ := strings.Cut(r.Header.Get("Content-Type"), ";")
	if r.newEvent {
		if data, err = eventPatch(types.PatchType(kind), data); err != nil {
			return nil, err
		}
	}
	obj, patch := r.object(), client.RawPatch(types.PatchType(kind), data)
	options := client.PatchOptions{DryRun: raw.DryRun, Force: raw.Force, FieldManager: raw.FieldManager, Raw: raw}
	if r.subresource != "" {
		body := r.object()
		return body, r.client.SubResource(r.subresource).Patch(
			r.Context(), obj, patch, &client.SubResourcePatchOptions{PatchOptions: options, SubResourceBody: body},
		)
	}
	return obj, r.client.Patch(r.Context(), obj, patch, &options)
}

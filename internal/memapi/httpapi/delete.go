// SPDX-License-Identifier: Apache-2.0

package httpapi

import (
	"io"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metascheme "k8s.io/apimachinery/pkg/apis/meta/internalversion/scheme"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apiserver/pkg/endpoints/handlers/negotiation"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

func (r *request) delete() (any, error) {
	raw, err := r.deleteOptions()
	if err != nil {
		return nil, err
	}
	options := client.DeleteOptions{
		GracePeriodSeconds: raw.GracePeriodSeconds, Preconditions: raw.Preconditions,
		PropagationPolicy: raw.PropagationPolicy, DryRun: raw.DryRun, Raw: raw,
	}
	if r.name == "" {
		return r.deleteCollection(options)
	}
	status := &metav1.Status{
		TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}, Status: metav1.StatusSuccess,
		Details: &metav1.StatusDetails{Name: r.name, Group: r.kind.Group, Kind: r.kind.Plural},
	}
	if r.server == nil {
		return status, r.client.Delete(r.Context(), r.object(), &options)
	}
	before := r.object()
	found := r.client.Get(r.Context(), r.key(), before) == nil
	if err := r.client.Delete(r.Context(), r.object(), &options); err != nil {
		return nil, err
	}
	after := r.object()
	if err := r.client.Get(r.Context(), r.key(), after); err == nil && after.GetUID() == before.GetUID() &&
		!r.onlyTried(before, raw) {
		return after, nil // it waits for finalizers or for its grace period
	}
	if found {
		status.Details.UID = before.GetUID()
		if returnsDeleted[r.kind.Kind] && r.kind.Group == "" {
			return before, nil
		}
	}
	return status, nil
}

// onlyTried reports whether an object still exists only because its deletion was a dry run. For an object that would
// wait, a real server shows what it would wait for; the API in memory shows the object as it is.
func (r *request) onlyTried(obj *unstructured.Unstructured, options *metav1.DeleteOptions) bool {
	ends := !r.kind.Orphans
	if policy := options.PropagationPolicy; policy != nil {
		ends = *policy == metav1.DeletePropagationBackground
	}
	return len(options.DryRun) > 0 && len(obj.GetFinalizers()) == 0 && ends
}

// returnsDeleted are the kinds of the core group whose deletion always returns the object.
var returnsDeleted = map[string]bool{
	"PersistentVolume": true, "PersistentVolumeClaim": true, "Pod": true, "PodTemplate": true, "ResourceQuota": true,
	"Service": true, "ServiceAccount": true,
}

// deleteCollection deletes objects, and returns them if they are known.
func (r *request) deleteCollection(options client.DeleteOptions) (any, error) {
	list, err := r.listOptions()
	if err != nil {
		return nil, err
	}
	var deleted any = &metav1.Status{
		TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}, Status: metav1.StatusSuccess,
		Details: &metav1.StatusDetails{Group: r.kind.Group, Kind: r.kind.Plural},
	}
	if r.server != nil {
		if deleted, err = r.list(); err != nil {
			return nil, err
		}
	}
	return deleted, r.client.DeleteAllOf(
		r.Context(), r.object(), &client.DeleteAllOfOptions{ListOptions: *list, DeleteOptions: options},
	)
}

// deleteOptions returns the options of a delete, which are in its body or in its query: DeleteResource in
// k8s.io/apiserver/pkg/endpoints/handlers/delete.go.
func (r *request) deleteOptions() (*metav1.DeleteOptions, error) {
	options := &metav1.DeleteOptions{}
	var data []byte
	if r.Body != nil {
		var err error
		if data, err = io.ReadAll(r.Body); err != nil {
			return nil, err
		}
	}
	if len(data) == 0 {
		if err := metav1.Convert_url_Values_To_v1_DeleteOptions(&r.query, options, nil); err != nil {
			return nil, apierrors.NewBadRequest(err.Error())
		}
		return options, nil
	}
	codec, err := negotiation.NegotiateInputSerializer(r.Request, false, metascheme.Codecs)
	if err != nil {
		return nil, err
	}
	kind := metav1.SchemeGroupVersion.WithKind("DeleteOptions")
	decoder := metascheme.Codecs.DecoderToVersion(codec.Serializer, kind.GroupVersion())
	decoded, _, err := decoder.Decode(data, &kind, options)
	switch {
	case err != nil:
		return nil, apierrors.NewBadRequest(err.Error())
	case decoded != options:
		return nil, apierrors.NewBadRequest("decoded object cannot be converted to DeleteOptions")
	}
	return options, nil
}

// SPDX-License-Identifier: Apache-2.0

package fidelity

import (
	"encoding/json"

	autoscalingv1 "k8s.io/api/autoscaling/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// patchTypes are the patch types by name.
var patchTypes = map[string]types.PatchType{
	JSONPatch: types.JSONPatchType, MergePatch: types.MergePatchType, StrategicPatch: types.StrategicMergePatchType,
	ApplyPatch: types.ApplyPatchType,
}

// step makes the calls of an operation.
func (r *run) step(o Operation) {
	switch {
	case o.Verb == Send:
		r.send(o)
	case o.Subresource == "scale":
		r.scale(o)
	case o.Subresource == "eviction":
		r.evict(o)
	case o.Verb == Get:
		r.get(o)
	case o.Verb == List:
		r.pages(o)
	case o.Verb == Create:
		object := r.object(o, edited(r.base(o), r.edits(o, o.Edits)))
		object.SetGenerateName(r.own(o, object.GetGenerateName()))
		r.answer(o, object, r.Client.Create(r.ctx, object, &client.CreateOptions{FieldManager: o.Owner, DryRun: o.dryRun()}))
	case o.Verb == Update:
		r.update(o)
	case o.Verb == Patch:
		r.patch(o)
	case o.Verb == Apply:
		r.apply(o)
	case o.Verb == Delete:
		object := r.named(o)
		options := o.deletion(r)
		r.answer(o, object, r.Client.Delete(r.ctx, object, &options))
	case o.Verb == DeleteAllOf:
		options := client.DeleteAllOfOptions{ListOptions: r.selection(o), DeleteOptions: o.deletion(r)}
		r.answer(o, nil, r.Client.DeleteAllOf(r.ctx, r.object(o, Object{}), &options))
	}
}

func (o Operation) dryRun() []string {
	if o.DryRun {
		return []string{metav1.DryRunAll}
	}
	return nil
}

func (o Operation) deletion(r *run) client.DeleteOptions {
	options := client.DeleteOptions{GracePeriodSeconds: o.Grace, DryRun: o.dryRun()}
	if o.Propagation != "" {
		options.PropagationPolicy = new(metav1.DeletionPropagation(o.Propagation))
	}
	if o.UID == "" && o.Version == "" {
		return options
	}
	options.Preconditions = &metav1.Preconditions{}
	if o.UID != "" {
		options.Preconditions.UID = new(types.UID(r.token(o, o.UID)))
	}
	if o.Version != "" {
		options.Preconditions.ResourceVersion = new(r.token(o, o.Version))
	}
	return options
}

func (r *run) get(o Operation) {
	object := r.object(o, Object{})
	key := client.ObjectKey{Namespace: r.namespace(o), Name: r.name(o)}
	o.Edits = nil
	r.answer(o, object, r.Client.Get(r.ctx, key, object))
}

// selection returns the options of a list.
func (r *run) selection(o Operation) client.ListOptions {
	options := client.ListOptions{Limit: o.Limit}
	for _, scope := range r.scope(o.Kind) {
		scope.ApplyToList(&options)
	}
	if o.Namespace != "" && !o.Kind.ClusterScoped {
		options.Namespace = o.Namespace
	}
	if o.Labels != "" {
		// Selectors of sequences are well-formed.
		selector, err := labels.Parse(o.Labels)
		if err != nil {
			panic(err)
		}
		if options.LabelSelector != nil {
			requirements, _ := options.LabelSelector.Requirements()
			selector = selector.Add(requirements...)
		}
		options.LabelSelector = selector
	}
	if o.Fields != "" {
		options.FieldSelector = fields.ParseSelectorOrDie(o.Fields)
	}
	return options
}

// pages lists with one call for each page.
func (r *run) pages(o Operation) {
	options := r.selection(o)
	for {
		list := r.list(o)
		err := r.Client.List(r.ctx, list, &options)
		answer := Answer{Call: o.String(), Failure: failure(err), Object: content(list)}
		items, _ := answer.Object["items"].([]any)
		if untyped, ok := list.(*unstructured.UnstructuredList); ok {
			answer.Object = runtime.DeepCopyJSON(untyped.Object)
			for i := range untyped.Items {
				items = append(items, runtime.DeepCopyJSON(untyped.Items[i].Object))
			}
		}
		delete(answer.Object, "items")
		for _, item := range items {
			answer.Items = append(answer.Items, item.(Object))
			if err == nil && o.Form != Metadata {
				r.remember(o, item.(Object))
			}
		}
		r.answers = append(r.answers, answer)
		if options.Continue = list.GetContinue(); err != nil || options.Continue == "" || len(r.answers) > Length {
			return // a longer list has no end
		}
	}
}

func (r *run) update(o Operation) {
	object := r.object(o, edited(r.base(o), r.edits(o, o.Edits)))
	options := client.UpdateOptions{FieldManager: o.Owner, DryRun: o.dryRun()}
	if o.Subresource == "" {
		r.answer(o, object, r.Client.Update(r.ctx, object, &options))
		return
	}
	r.answer(
		o, object,
		r.Client.SubResource(o.Subresource).Update(r.ctx, object, &client.SubResourceUpdateOptions{UpdateOptions: options}),
	)
}

// body returns the content of a patch.
func (r *run) body(o Operation) client.Patch {
	var body any
	edits := r.edits(o, o.Edits)
	switch o.Patch {
	case JSONPatch:
		operations := pointing(r.edits(o, o.Tests))
		for _, test := range operations {
			test.(Object)["op"] = "test"
		}
		operations = append(operations, pointing(edits)...)
		body = operations
	case ApplyPatch:
		body = r.object(o, edited(r.base(o), edits))
		body.(client.Object).GetObjectKind().SetGroupVersionKind(o.Kind.GroupVersionKind)
	default:
		body = merging(edits)
	}
	text, err := json.Marshal(body)
	if err != nil {
		panic(err)
	}
	return client.RawPatch(patchTypes[o.Patch], text)
}

func (r *run) patch(o Operation) {
	object, body := r.named(o), r.body(o)
	options := client.PatchOptions{FieldManager: o.Owner, DryRun: o.dryRun()}
	if o.Force {
		options.Force = &o.Force
	}
	if o.Subresource == "" {
		r.answer(o, object, r.Client.Patch(r.ctx, object, body, &options))
		return
	}
	r.answer(
		o, object,
		r.Client.SubResource(o.Subresource).Patch(r.ctx, object, body, &client.SubResourcePatchOptions{
			PatchOptions: options,
		}),
	)
}

func (r *run) apply(o Operation) {
	object := &unstructured.Unstructured{Object: edited(r.base(o), r.edits(o, o.Edits))}
	object.SetGroupVersionKind(o.Kind.GroupVersionKind)
	configuration := client.ApplyConfigurationFromUnstructured(object)
	options := client.ApplyOptions{FieldManager: o.Owner, DryRun: o.dryRun()}
	if o.Force {
		options.Force = &o.Force
	}
	if o.Subresource == "" {
		err := r.Client.Apply(r.ctx, configuration, &options)
		r.answer(o, object, err)
		return
	}
	err := r.Client.SubResource(o.Subresource).Apply(r.ctx, configuration, &client.SubResourceApplyOptions{
		ApplyOptions: options,
	})
	r.answer(o, object, err)
}

// scale reads or writes the scale of an object, which has one Go type for all kinds.
func (r *run) scale(o Operation) {
	object := r.named(o)
	newScale := func() client.Object {
		if _, untyped := object.(*unstructured.Unstructured); untyped {
			scale := &unstructured.Unstructured{}
			scale.SetGroupVersionKind(schema.GroupVersionKind{Group: "autoscaling", Version: "v1", Kind: "Scale"})
			return scale
		}
		return &autoscalingv1.Scale{}
	}
	scaler := r.Client.SubResource("scale")
	read := func() Object {
		scale := newScale()
		r.answer(o, scale, scaler.Get(r.ctx, object, scale))
		return r.answers[len(r.answers)-1].Object
	}
	switch o.Verb {
	case Get:
		read()
	case Update:
		base := Object{"metadata": Object{"name": r.name(o), "namespace": r.namespace(o)}}
		if o.Base == Live {
			if base = read(); r.answers[0].Failure != nil {
				return
			}
		}
		scale := newScale()
		fields := edited(base, r.edits(o, o.Edits))
		if untyped, ok := scale.(*unstructured.Unstructured); ok {
			kind := untyped.GroupVersionKind()
			untyped.Object = fields
			untyped.SetGroupVersionKind(kind)
		} else {
			mustConvert(fields, scale)
		}
		options := &client.SubResourceUpdateOptions{
			UpdateOptions: client.UpdateOptions{FieldManager: o.Owner, DryRun: o.dryRun()}, SubResourceBody: scale,
		}
		r.answer(o, scale, scaler.Update(r.ctx, object, options))
	case Patch:
		options := &client.SubResourcePatchOptions{
			PatchOptions: client.PatchOptions{FieldManager: o.Owner, DryRun: o.dryRun()}, SubResourceBody: newScale(),
		}
		r.answer(o, options.SubResourceBody, scaler.Patch(r.ctx, object, r.body(o), options))
	}
}

func (r *run) evict(o Operation) {
	eviction := &policyv1.Eviction{}
	if deletion := o.deletion(r); o.Grace != nil || deletion.Preconditions != nil || o.DryRun {
		eviction.DeleteOptions = deletion.AsDeleteOptions()
	}
	object := r.named(o)
	r.answer(o, eviction, r.Client.SubResource("eviction").Create(r.ctx, object, eviction))
}

// SPDX-License-Identifier: Apache-2.0

package simple

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"reflect"
	"runtime/debug"

	"github.com/go-logr/logr"
	admissionv1 "k8s.io/api/admission/v1"
	apierrs "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"trueup.dev/app"
	"trueup.dev/internal/nilcheck"
	"trueup.dev/reconcilers"
	"trueup.dev/resource"
)

// Validate asks the Validator of the kind, as the API server has it done.
func (a *App) Validate(ctx context.Context, req *app.AdmissionRequest) error {
	managed, ok := a.managed(req.GroupVersionKind())
	if !ok || managed.Validator == nil {
		return fmt.Errorf("validation of %s: %w", req.GroupVersionKind(), app.ErrNotImplemented)
	}
	return managed.Validator.Validate(ctx, req)
}

// Mutate asks the Mutator of the kind, as the API server has it done. The response has an UpdatedObject, unless there is no object.
func (a *App) Mutate(ctx context.Context, req *app.AdmissionRequest) (*app.MutatingResponse, error) {
	managed, ok := a.managed(req.GroupVersionKind())
	if !ok || managed.Mutator == nil {
		return nil, fmt.Errorf("mutation of %s: %w", req.GroupVersionKind(), app.ErrNotImplemented)
	}
	response, err := managed.Mutator.Mutate(ctx, req)
	switch {
	case err != nil:
		return nil, err
	case response == nil || nilcheck.IsNil(response.UpdatedObject):
		return &app.MutatingResponse{UpdatedObject: req.Object}, nil
	case req.Object != nil && reflect.TypeOf(response.UpdatedObject) != reflect.TypeOf(req.Object):
		return nil, fmt.Errorf("the mutator has returned a %T for a %T", response.UpdatedObject, req.Object)
	}
	return response, nil
}

// admit answers the requests for objects of a kind in several versions: by what answer does with the object as it is to be stored.
func (a *App) admit(what string, kinds []resource.Kind, answer func(ctx context.Context, req *app.AdmissionRequest, object resource.Object) error) *admission.Webhook {
	versions := map[schema.GroupVersionKind]admission.Handler{}
	for _, kind := range kinds {
		versions[kind.GroupVersionKind()] = &reconcilers.AdmissionWebhookAdapter[resource.Object]{
			Name: a.config.Name,
			Type: kind.ZeroValue(),
			Reconciler: &reconcilers.SyncReconciler[resource.Object]{
				Name:                   kind.Kind(),
				SyncDuringFinalization: true,
				Sync: func(ctx context.Context, object resource.Object) error {
					req, err := admissionRequest(kind, reconcilers.RetrieveAdmissionRequest(ctx), object)
					if err != nil {
						return err
					}
					if err := a.recovered(ctx, what, func() error { return answer(ctx, req, object) }); err != nil {
						response := reconcilers.RetrieveAdmissionResponse(ctx)
						response.Allowed, response.Result = false, denial(err)
					}
					return nil
				},
			},
			Config: a.base,
		}
	}
	return &admission.Webhook{Handler: admission.HandlerFunc(func(ctx context.Context, req admission.Request) admission.Response {
		gvk := schema.GroupVersionKind(req.Kind)
		if handler, ok := versions[gvk]; ok {
			return handler.Handle(ctx, req)
		}
		return admission.Errored(http.StatusNotFound, fmt.Errorf("%s is not a kind that is handled here", gvk))
	})}
}

// recovered makes an error of a panic. Users get to read it, so that it does not say more than what they can tell others; the rest is logged.
func (a *App) recovered(ctx context.Context, what string, call func() error) (err error) {
	defer func() {
		if panicked := recover(); panicked != nil {
			logr.FromContextOrDiscard(ctx).Error(fmt.Errorf("%v", panicked), "the "+what+" panicked", "stack", string(debug.Stack()))
			err = &apierrs.StatusError{ErrStatus: metav1.Status{
				Status: metav1.StatusFailure, Code: http.StatusInternalServerError, Reason: metav1.StatusReasonInternalError,
				Message: fmt.Sprintf("the %s of app %q panicked", what, a.config.Name),
			}}
		}
	}()
	return call()
}

func (a *App) validate(ctx context.Context, req *app.AdmissionRequest, _ resource.Object) error {
	return a.Validate(ctx, req)
}

func (a *App) mutate(ctx context.Context, req *app.AdmissionRequest, object resource.Object) error {
	response, err := a.Mutate(ctx, req)
	if err != nil || req.Object == nil {
		return err
	}
	reflect.ValueOf(object).Elem().Set(reflect.ValueOf(response.UpdatedObject).Elem())
	object.GetObjectKind().SetGroupVersionKind(req.GroupVersionKind()) // objects made in Go rarely say it
	return nil
}

// admissionRequest has copies of the object.
func admissionRequest(kind resource.Kind, from admission.Request, object resource.Object) (*app.AdmissionRequest, error) {
	req := &app.AdmissionRequest{
		Action:   app.AdmissionAction(from.Operation),
		Group:    kind.Group(),
		Version:  kind.Version(),
		Kind:     kind.Kind(),
		UserInfo: from.UserInfo,
		DryRun:   from.DryRun != nil && *from.DryRun,
	}
	copied := object.DeepCopyObject().(resource.Object)
	if from.Operation == admissionv1.Delete {
		req.OldObject = copied
		return req, nil
	}
	req.Object = copied
	if len(from.OldObject.Raw) > 0 {
		req.OldObject = kind.ZeroValue()
		if err := json.Unmarshal(from.OldObject.Raw, req.OldObject); err != nil {
			return nil, fmt.Errorf("old object: %w", err)
		}
	}
	return req, nil
}

// denial is what the user gets to read.
func denial(err error) *metav1.Status {
	var status apierrs.APIStatus
	if errors.As(err, &status) {
		denied := status.Status()
		denied.Message = err.Error()
		return &denied
	}
	return &metav1.Status{Status: metav1.StatusFailure, Code: http.StatusForbidden, Reason: metav1.StatusReasonForbidden, Message: err.Error()}
}

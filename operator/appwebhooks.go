// SPDX-License-Identifier: Apache-2.0

package operator

import (
	"cmp"
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
	"trueup.dev/internal/objects/nilcheck"
	"trueup.dev/reconcilers"
	"trueup.dev/resource"
)

// AppWebhooks serves the methods Mutate, Validate and Convert of an app as webhooks.
//
// Each kind has paths of its own, such as /mutate/widgets.example.com. The paths /mutate and /validate serve all
// kinds, and /convert serves conversions. A method that returns [app.ErrNotImplemented] allows the request unchanged.
// AppWebhooks recovers panics and denies the request.
type AppWebhooks struct {
	// App handles the requests. Required.
	App app.App

	// Name of the app, for messages. Required.
	Name string

	// Mutated and Validated are the kinds for which the app is called. Requests for other kinds are errors. Default:
	// none.
	Mutated, Validated []resource.Kind

	// Converted serves conversions. Defaults to false.
	Converted bool

	// Config is available to the app from the context of requests, see [reconcilers.RetrieveConfig]. Optional.
	Config reconcilers.Config

	// Logger logs failed conversions. Default: none.
	Logger logr.Logger
}

// ConversionPath is the path of the conversion webhook.
const ConversionPath = "/convert"

// AdmissionPath returns the path of the webhook for a kind, in all of its versions. The verb is mutate or validate.
func AdmissionPath(verb string, kind resource.Kind) string {
	return "/" + verb + "/" + kind.Plural() + "." + cmp.Or(kind.Group(), "core")
}

// Handlers returns the HTTP handlers by path.
func (w *AppWebhooks) Handlers() map[string]http.Handler {
	handlers := map[string]http.Handler{}
	for _, hook := range []struct {
		verb, what string
		kinds      []resource.Kind
		answer     answerFunc
	}{
		{"mutate", "mutator", w.Mutated, w.mutate}, {"validate", "validator", w.Validated, w.validate},
	} {
		if len(hook.kinds) == 0 {
			continue
		}
		handlers["/"+hook.verb] = w.admit(hook.what, hook.kinds, hook.answer)
		for _, kind := range hook.kinds {
			if path := AdmissionPath(hook.verb, kind); handlers[path] == nil {
				handlers[path] = w.admit(hook.what, versionsOf(kind, hook.kinds), hook.answer)
			}
		}
	}
	if w.Converted {
		handlers[ConversionPath] = http.HandlerFunc(w.serveConversion)
	}
	return handlers
}

// versionsOf returns all versions of a kind.
func versionsOf(kind resource.Kind, kinds []resource.Kind) []resource.Kind {
	var versions []resource.Kind
	for _, k := range kinds {
		if k.GroupKind() == kind.GroupKind() {
			versions = append(versions, k)
		}
	}
	return versions
}

// answerFunc handles a request. It may change object, which is the object that the API server will store.
type answerFunc func(ctx context.Context, req *app.AdmissionRequest, object resource.Object) error

// admit returns the webhook for requests for objects of these kinds.
func (w *AppWebhooks) admit(what string, kinds []resource.Kind, answer answerFunc) *admission.Webhook {
	handlers := map[schema.GroupVersionKind]admission.Handler{}
	for _, kind := range kinds {
		handlers[kind.GroupVersionKind()] = &reconcilers.AdmissionWebhookAdapter[resource.Object]{
			Name: w.Name,
			Type: kind.ZeroValue(),
			Reconciler: &reconcilers.SyncReconciler[resource.Object]{
				Name:                   kind.Kind(),
				SyncDuringFinalization: true,
				Sync: func(ctx context.Context, object resource.Object) error {
					req, err := admissionRequest(kind, reconcilers.RetrieveAdmissionRequest(ctx), object)
					if err != nil {
						return err
					}
					err = w.recovered(ctx, what, func() error { return answer(ctx, req, object) })
					if err != nil && !errors.Is(err, app.ErrNotImplemented) {
						response := reconcilers.RetrieveAdmissionResponse(ctx)
						response.Allowed, response.Result = false, denial(err)
					}
					return nil
				},
			},
			Config: w.Config,
		}
	}
	return &admission.Webhook{Handler: admission.HandlerFunc(func(
		ctx context.Context, req admission.Request,
	) admission.Response {
		gvk := schema.GroupVersionKind(req.Kind)
		if handler, ok := handlers[gvk]; ok {
			return handler.Handle(ctx, req)
		}
		return admission.Errored(http.StatusNotFound, fmt.Errorf("%s is not a kind that is handled here", gvk))
	})}
}

// recovered turns a panic into an error. The client of the API server reads the error, so it contains no details; the
// log does.
func (w *AppWebhooks) recovered(ctx context.Context, what string, call func() error) (err error) {
	defer func() {
		if panicked := recover(); panicked != nil {
			logr.FromContextOrDiscard(ctx).Error(
				fmt.Errorf("%v", panicked), "the "+what+" panicked", "stack", string(debug.Stack()),
			)
			err = &apierrs.StatusError{ErrStatus: metav1.Status{
				Status: metav1.StatusFailure, Code: http.StatusInternalServerError, Reason: metav1.StatusReasonInternalError,
				Message: fmt.Sprintf("the %s of app %q panicked", what, w.Name),
			}}
		}
	}()
	return call()
}

func (w *AppWebhooks) validate(ctx context.Context, req *app.AdmissionRequest, _ resource.Object) error {
	return w.App.Validate(ctx, req)
}

func (w *AppWebhooks) mutate(ctx context.Context, req *app.AdmissionRequest, object resource.Object) error {
	response, err := w.App.Mutate(ctx, req)
	if err != nil || req.Object == nil {
		return err
	}
	updated := req.Object
	if response != nil && !nilcheck.IsNil(response.UpdatedObject) {
		updated = response.UpdatedObject
	}
	if reflect.TypeOf(updated) != reflect.TypeOf(object) {
		return fmt.Errorf("the mutator returned a %T, must be a %T", updated, object)
	}
	reflect.ValueOf(object).Elem().Set(reflect.ValueOf(updated).Elem())
	object.GetObjectKind().SetGroupVersionKind(req.GroupVersionKind()) // objects made in Go rarely set it
	return nil
}

// admissionRequest returns the request for the app, with copies of the object.
func admissionRequest(
	kind resource.Kind, from admission.Request, object resource.Object,
) (*app.AdmissionRequest, error) {
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

// denial returns the status that the client receives.
func denial(err error) *metav1.Status {
	var status apierrs.APIStatus
	if errors.As(err, &status) {
		denied := status.Status()
		denied.Message = err.Error()
		return &denied
	}
	return &metav1.Status{
		Status: metav1.StatusFailure, Code: http.StatusForbidden, Reason: metav1.StatusReasonForbidden, Message: err.Error(),
	}
}

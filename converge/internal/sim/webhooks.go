// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"

	admissionv1 "k8s.io/api/admission/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"

	"trueup.dev/converge/internal/inject"
	"trueup.dev/converge/internal/world"
	"trueup.dev/internal/memapi"
)

// webhooks calls the webhooks of all processes for writes of all clients. There are none before the set-up of the first
// process has ended. A webhook may make calls, into which no faults are injected. While a program restarts, its
// webhooks are not available to other programs. Users and actors are not affected: they would wait.
type webhooks struct {
	*scene

	processes *processes
	gateway   *gateway
}

var _ memapi.Admission = (*webhooks)(nil)

// webhookCaller is the name of the webhooks in calls.
const webhookCaller = "webhook"

// Handles reports whether a webhook is registered for a write.
func (w *webhooks) Handles(r memapi.AdmissionRequest) bool {
	for hook := range w.processes.webhooks() {
		if hook.handles(r) {
			return true
		}
	}
	return false
}

// Mutate calls the mutating webhooks, one after the other.
func (w *webhooks) Mutate(r memapi.AdmissionRequest) ([]byte, error) {
	if r.Operation == admissionv1.Delete {
		return nil, nil
	}
	var mutated []byte
	for hook := range w.processes.webhooks() {
		kind, ok := hook.versionOf(r)
		if !hook.Mutating || !ok {
			continue
		}
		shown, err := r.In(kind)
		if err != nil {
			return nil, err
		}
		data, err := w.call(hook, shown)
		if err != nil {
			return nil, err
		}
		if len(data) == 0 {
			continue
		}
		if shown.Object, err = memapi.JSONPatched(shown.Object, data); err != nil {
			return nil, hook.failed(err)
		}
		if shown, err = shown.In(r.Kind); err != nil {
			return nil, err
		}
		mutated = shown.Object
		w.record(hook, r, mutated)
		r.Object = mutated
	}
	return mutated, nil
}

// record records what a webhook has made of an object that a process writes.
func (w *webhooks) record(hook Webhook, r memapi.AdmissionRequest, mutated []byte) {
	c := w.gateway.serving
	if c == nil {
		return
	}
	by := world.Writer{Client: c.process.program.Client}
	if a := c.process.activity(c.Who); a != nil {
		by = a.Writer()
	}
	w.trace.Mutated(hook.Name, by, r, mutated)
}

// Validate calls the validating webhooks. The first error refuses the write.
func (w *webhooks) Validate(r memapi.AdmissionRequest) error {
	for hook := range w.processes.webhooks() {
		kind, ok := hook.versionOf(r)
		if hook.Mutating || !ok {
			continue
		}
		shown, err := r.In(kind)
		if err != nil {
			return err
		}
		if _, err := w.call(hook, shown); err != nil {
			return err
		}
	}
	return nil
}

// call sends a request to a webhook, and returns its patch.
func (w *webhooks) call(hook Webhook, request memapi.AdmissionRequest) ([]byte, error) {
	other := w.isOther(hook)
	if !hook.selects(request, w.world.Server) || !other && hook.process.dead.Load() {
		return nil, nil
	}
	if other && !w.available(hook.process, request) {
		if hook.IgnoresFailures {
			return nil, nil
		}
		return nil, hook.failed(errors.New("connection refused"))
	}
	response, err := w.send(hook, request)
	switch {
	case err != nil && hook.IgnoresFailures:
		return nil, nil
	case err != nil:
		return nil, hook.failed(err)
	case !response.Allowed:
		return nil, hook.denied(response.Result)
	}
	return response.Patch, nil
}

// isOther reports whether a program makes the request, and the webhook is one of another program.
func (w *webhooks) isOther(hook Webhook) bool {
	c := w.gateway.serving
	return c != nil && c.process.program.Index != hook.process.program.Index
}

// available reports whether another program can reach the webhooks of a process, which may restart just before. A
// process that is paused does not answer in time.
func (w *webhooks) available(p *Process, request memapi.AdmissionRequest) bool {
	if p.dead.Load() || p.restarting || p.paused {
		return false
	}
	if p.busy() {
		return true
	}
	at := p.site("admit", request.Kind.Kind, w.world.Generated.Key(request.Key))
	if w.faults.at(at, inject.SetOf(inject.Restart)) != inject.Restart {
		return true
	}
	w.trace.Fault(p.program.who(), "ends", inject.Restart)
	p.die()
	return false
}

// send sends a request to a webhook, in a goroutine of its own, and serves the calls of the webhook meanwhile.
func (w *webhooks) send(hook Webhook, request memapi.AdmissionRequest) (*admissionv1.AdmissionResponse, error) {
	body, err := json.Marshal(reviewOf(request))
	if err != nil {
		return nil, err
	}
	ctx := context.WithValue(hook.process.ctx, activityKey{}, &activity{Reconcile: world.Reconcile{Name: webhookCaller}})
	httpRequest, err := http.NewRequestWithContext(ctx, http.MethodPost, hook.Path, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	httpRequest.Header.Set("Content-Type", "application/json")
	buffer := httptest.NewRecorder()
	w.serveUntilReturned(hook.process, func() { hook.handler.ServeHTTP(buffer, httpRequest) })
	var review admissionv1.AdmissionReview
	if err := json.Unmarshal(buffer.Body.Bytes(), &review); err != nil || review.Response == nil {
		return nil, fmt.Errorf("invalid response: %s", buffer.Body.String())
	}
	return review.Response, nil
}

// serveUntilReturned runs a webhook while a write waits for it.
func (w *webhooks) serveUntilReturned(p *Process, run func()) {
	serving, off := w.gateway.serving, w.faults.off
	p.admitting, w.faults.off = true, true
	defer func() {
		p.admitting, w.gateway.serving, w.faults.off = false, serving, off
	}()
	done := make(chan struct{})
	go func() {
		defer p.scheduler.wake()
		defer close(done)
		run()
	}()
	w.gateway.serveUntil(p, done)
}

// reviewOf returns the request that is sent to a webhook.
func reviewOf(r memapi.AdmissionRequest) *admissionv1.AdmissionReview {
	gvk := r.Kind.GroupVersionKind
	kind := metav1.GroupVersionKind{Group: gvk.Group, Version: gvk.Version, Kind: gvk.Kind}
	resource := metav1.GroupVersionResource{Group: gvk.Group, Version: gvk.Version, Resource: r.Kind.Plural}
	return &admissionv1.AdmissionReview{
		TypeMeta: metav1.TypeMeta{APIVersion: admissionv1.SchemeGroupVersion.String(), Kind: "AdmissionReview"},
		Request: &admissionv1.AdmissionRequest{
			UID: types.UID("converge"), Kind: kind, RequestKind: &kind, Resource: resource, RequestResource: &resource,
			SubResource: r.Subresource, RequestSubResource: r.Subresource, Name: r.Key.Name, Namespace: r.Key.Namespace,
			Operation: r.Operation, UserInfo: authenticationv1.UserInfo{Username: "converge"}, DryRun: &r.DryRun,
			Object: runtime.RawExtension{Raw: r.Object}, OldObject: runtime.RawExtension{Raw: r.OldObject},
		},
	}
}

// SPDX-License-Identifier: Apache-2.0

package simple_test

import (
	"net"
	"testing"

	"github.com/google/go-cmp/cmp"

	"trueup.dev/simple"
)

// A process, for example one that runs unit tests, may make several apps to read what they consist of.
func TestNewApp_OpensNoPortAndTakesNoName(t *testing.T) {
	e, calls := newEnv(t), &record{}
	config := e.config("twice")
	config.MetricsBindAddress, config.HealthBindAddress = address(e.FreePort()), address(e.FreePort())
	config.ManagedKinds = []simple.AppManagedKind{
		{Kind: widgetKind, Watcher: calls.watcher(), Validator: &simple.Validator{}},
	}
	to := e.serveWebhooks(&config)
	first, second := e.make(config), e.make(config)
	for _, made := range []*simple.App{first, second} {
		var kinds []string
		for _, kind := range made.ManagedKinds() {
			kinds = append(kinds, kind.String())
		}
		if diff := cmp.Diff([]string{widgetKind.String()}, kinds); diff != "" {
			t.Errorf("managed kinds (-want +got):\n%s", diff)
		}
		if _, validating := made.WebhookConfigurations(to); validating == nil || len(validating.Webhooks) != 1 {
			t.Errorf("validating webhooks = %v", validating)
		}
	}
	for _, at := range []string{config.MetricsBindAddress, config.HealthBindAddress, address(config.Webhooks.Port)} {
		listener, err := net.Listen("tcp", at)
		if err != nil {
			t.Fatalf("NewApp has opened a port: %v", err)
		}
		e.Must(listener.Close())
	}
	e.run(second)
	e.Add(newWidget("it", ""))
	e.Eventually(func() error { return calls.has("add it") })
	for _, path := range []string{"/healthz", "/readyz", "/readyz/webhooks"} {
		e.Eventually(func() error {
			_, err := get("http://" + config.HealthBindAddress + path)
			return err
		})
	}
}

// A port that another process has is an error of Run.
func TestApp_HealthPortInUse(t *testing.T) {
	e := newEnv(t)
	config := e.config("taken")
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	e.Must(err)
	defer listener.Close()
	config.HealthBindAddress = listener.Addr().String()
	config.ManagedKinds = []simple.AppManagedKind{
		{Kind: widgetKind, Watcher: &simple.Watcher{}, ReconcileOptions: simple.ReconcileOptions{UsePlain: true}},
	}
	if err := e.make(config).Run(e.Context()); err == nil {
		t.Error("Run returned no error")
	}
}

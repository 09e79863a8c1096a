// SPDX-License-Identifier: Apache-2.0

package otel_test

import (
	"testing"

	"github.com/go-logr/logr"
	"k8s.io/klog/v2"
	"sigs.k8s.io/controller-runtime/pkg/log"
)

func TestMain(m *testing.M) {
	log.SetLogger(logr.Discard())
	klog.SetLogger(logr.Discard()) // logs panics of tests
	m.Run()
}

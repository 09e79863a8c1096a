// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"testing"

	"trueup.dev/converge/internal/inject"
)

func TestOtherClient_unknownFault(t *testing.T) {
	defer func() {
		if recover() == nil {
			t.Error("a fault without an effect passes")
		}
	}()
	(&otherClient{run: &run{}}).interfere(nil, inject.Restart)
}

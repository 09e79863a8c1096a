// SPDX-License-Identifier: Apache-2.0

package corpus

var c14 = []Entry{}

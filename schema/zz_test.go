package schema
import ("testing";"time";"strings";"fmt")
func TestZZ(t *testing.T){ s:=schemaOf[insert](t)
 for _,r:=range []string{strings.Repeat(`{}`, 500_000),strings.Repeat("```", 300_000), strings.Repeat("` ", 300_000),strings.Repeat(`{"function":"f","params":{"a":"`,30000), strings.Repeat("f(a=\"x\n",100000),strings.Repeat("<tool_call>{\"a\":",50000), strings.Repeat("```json\n{\"name\":\"f\"\n",40000),strings.Repeat("{\"function\":\"g\"",50000),strings.Repeat("<think>",50000),strings.Repeat("[TOOL_CALLS]",50000),strings.Repeat("<function=f>",50000)}{
  a:=time.Now(); s.Decode(r,Options{}); b:=time.Now(); FindCalls(r,knownTo("f")); fmt.Printf("%.30q %v %v\n",r,b.Sub(a),time.Since(b)) } }

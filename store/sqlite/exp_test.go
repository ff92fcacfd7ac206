package sqlite
import ("testing";"database/sql";"fmt";"time";"sort"; "strings"; _ "modernc.org/sqlite")
func TestExp(t *testing.T){
 for _,ps:=range []int{1024,2048,4096,8192}{
 for _,k:=range []int{1,2,4,8,12}{
  dir:=t.TempDir()
  db,err:=sql.Open("sqlite",fmt.Sprintf("file:%s/x.db?_pragma=page_size(%d)&_pragma=journal_mode(wal)&_pragma=synchronous(full)",dir,ps)); if err!=nil{t.Fatal(err)}
  db.SetMaxOpenConns(1)
  var st []*sql.Stmt
  for i:=range k { if _,err:=db.Exec(fmt.Sprintf("create table t%d(a integer primary key,b)",i));err!=nil{t.Fatal(err)}
   s,err:=db.Prepare(fmt.Sprintf("insert into t%d(b) values(?)",i)); if err!=nil{t.Fatal(err)}; st=append(st,s)}
  v:=strings.Repeat("x",100)
  var d []time.Duration
  for range 1500 { t0:=time.Now(); tx,_:=db.Begin(); for _,s:=range st { if _,err:=tx.Stmt(s).Exec(v);err!=nil{t.Fatal(err)}}; if err:=tx.Commit();err!=nil{t.Fatal(err)}; d=append(d,time.Since(t0))}
  sort.Slice(d,func(i,j int)bool{return d[i]<d[j]})
  t0:=time.Now(); for range 2000 { st[0].Exec(v)}; 
  fmt.Println("ps",ps,"trees",k,"median",d[len(d)/2],"p90",d[len(d)*9/10])
  db.Close()
  _ = t0
 }}
}
func BenchmarkExec(b *testing.B){
  db,_:=sql.Open("sqlite",fmt.Sprintf("file:%s/x.db?_pragma=journal_mode(wal)&_pragma=synchronous(full)",b.TempDir()))
  db.SetMaxOpenConns(1)
  db.Exec("create table t(a integer primary key,b)")
  tx,_:=db.Begin()
  s,_:=tx.Prepare("insert into t(b) values(?)")
  v:=[]byte(strings.Repeat("x",100))
  for b.Loop(){ s.Exec(v)}
  tx.Commit()
}
